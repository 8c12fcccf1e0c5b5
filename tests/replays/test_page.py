"""Pages of replays in a browser."""

import base64
import dataclasses
import gzip
import json
import re
from importlib import resources

import numpy as np
import pytest

from echelon_env import make_config
from echelon_env.config.catalog import LASER, MEDIUM, Catalog
from echelon_env.engine.state import REASONS
from echelon_env.evaluate import baseline, evaluation_seed
from echelon_env.layout.actions import Action
from echelon_env.replays import record_battle, write_page
from replays.battles import CONFIGS, recorded
from replays.pages import marks

pytestmark = marks


@pytest.fixture(scope="module")
def battle():
    return record_battle(baseline("expert"), baseline("veteran"), make_config("skirmish"), seed=evaluation_seed(7, 0))


@pytest.fixture
def shown(open_page, tmp_path):
    """Opens the page of a replay."""

    def shown(replay):
        path = tmp_path / "battle.html"
        write_page(path, replay)
        return open_page(path)

    return shown


@pytest.fixture
def opened(shown, battle):
    return shown(battle)


def test_a_whole_battle_has_the_same_bytes_in_the_browser(opened, battle, tmp_path):
    """`test_game_page` compares battles of all sizes."""
    assert (tmp_path / "battle.html").stat().st_size < 400_000
    assert len(resources.files("echelon_env.replays").joinpath("assets", "viewer.js").read_bytes()) < 80_000
    assert opened.verified == "equal"
    stated = f"as the file states: players, engine {battle.stamp['engine_hash'][:12]}"
    assert opened.text("verified") == "✓ verified"
    assert opened.title("verified") == f"{battle.decisions} of {battle.decisions} decisions equal ({stated})"


def test_a_weapon_may_have_the_name_of_a_property(shown):
    laser = dataclasses.replace(LASER, name="constructor")
    medium = dataclasses.replace(MEDIUM, primary="constructor", secondary=None, tertiary=None, special=None)
    config = make_config("duel-open", catalog=Catalog(weapons=(laser,), mech_classes=(medium,)), banned_weapons=())
    page = shown(recorded(config))
    assert page.verified == "equal"
    page.press("End")


def test_a_flipped_action_is_found_at_its_decision(shown):
    actions = recorded().actions.copy()
    actions[7, 2, Action.TURN] = -np.sign(actions[7, 2, Action.TURN])
    page = shown(dataclasses.replace(recorded(), actions=actions))
    assert page.verified == "8"
    assert page.text("verified") == "✗ differs at decision 8"
    assert "differs from the recording at decision 8" in page.title("verified")


def test_a_battle_that_was_over_has_the_digest_of_its_voxels(shown):
    assert shown(dataclasses.replace(recorded(), voxels_digest=None)).verified == str(recorded().decisions)


def test_a_replay_of_another_engine_names_both(shown):
    ours, theirs = recorded().stamp["engine_hash"][:12], "0123456789ab"
    stamp = {**recorded().stamp, "engine_hash": theirs + 52 * "0"}
    digests = recorded().digests.copy()
    digests[5] ^= 1  # as if a rule had changed
    for name, replay in (("same", {}), ("other", {"digests": digests})):
        page = shown(dataclasses.replace(recorded(), stamp=stamp, **replay))
        assert f"(as the file states: players, engine {ours}, recorded by {theirs})" in page.title("verified")
        assert page.verified == ("equal" if name == "same" else "5")


def test_without_scripts_there_is_a_picture(browser, tmp_path):
    write_page(tmp_path / "battle.html", recorded())
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto((tmp_path / "battle.html").as_uri())
        assert page.locator("noscript img").bounding_box()["width"] == 480


def test_keys_and_time(opened):
    opened.press("Home")
    assert (opened.decision, opened("echelon.playing")) == (0, False)
    opened.press("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft")
    assert opened("echelon.time") == 2
    opened.press("+", "+", "-")
    assert opened("echelon.speed") == 2
    opened.press("Shift+ArrowRight")
    first = opened("echelon.scan.marks[0].decision")
    assert opened.decision == first
    assert opened("document.getElementById('feed').innerText") != ""
    opened.press("Shift+ArrowRight", "Shift+ArrowLeft")
    assert opened.decision == first
    opened.press("Home", "k")
    kills = opened("echelon.scan.marks.filter((mark) => mark.kind === 'death').map((mark) => mark.decision)")
    assert opened.decision == kills[0]
    opened.press("End", "Shift+K")
    assert opened.decision == max(decision for decision in kills if decision < opened("echelon.simulation.decisions"))
    opened.press("End")
    assert opened.decision == opened("echelon.simulation.decisions")
    assert "wins" in opened("document.getElementById('ending').textContent")
    opened.press("Home", " ")
    opened.wait("echelon.time > 1")
    opened.press(" ")
    assert opened("echelon.playing") is False


def test_keys_of_mechs_and_cameras(opened):
    opened.press("Home", "3")
    assert opened("[echelon.selected, location.hash]") == [2, "#t=0&mech=2"]
    opened.press("f")
    assert opened("echelon.follows") is True
    opened.press("v")
    assert opened("[echelon.fog, document.getElementById('fog').ariaPressed]") == [True, "true"]
    opened.press("t")
    assert opened("[echelon.follows, echelon.camera.elevation > 1.5]") == [False, True]
    opened.press("?")
    assert opened("document.getElementById('keys').hidden") is False
    opened.press("?", "Escape")
    assert opened("[document.getElementById('keys').hidden, echelon.selected]") == [True, -1]


def test_the_inspector_shows_the_numbers_of_the_engine(opened, battle):
    engines = battle.play()
    for _ in range(41):
        engine = next(engines)
    opened("location.hash = '#t=40&mech=1'")
    opened.wait("echelon.selected === 1 && echelon.time === 40")
    opened.press("ArrowLeft", "ArrowRight")
    texts = {}
    for tab in ("mech", "senses", "observation", "action", "reward"):
        opened.page.click(f"#tab-{tab}")
        texts[tab] = opened("document.getElementById('details').innerText")
    armour = engine.state.mechs["armour"][0, 1]
    assert re.search(rf"armour\s+{armour:.0f}", texts["mech"])
    assert len(texts["senses"]) > 100 and "self (" in texts["observation"]
    for tab, name, value in (
        ("observation", "heat", engine.observations[0, 1, 6]),
        ("action", "throttle", battle.actions[40, 1, Action.THROTTLE]),
        ("reward", "all", engine.reward_components[0, 1].sum()),
    ):
        text = str(int(value)) if value == int(value) else f"{value:.2f}"  # whole numbers have no decimals
        assert re.search(rf"{name}\s+{text}(?![\d.])", texts[tab], re.IGNORECASE)


def test_the_card_of_the_end_leads_to_what_decided_the_battle(opened, battle):
    opened.press("End")
    assert not opened.hidden("card")
    *_, engine = battle.play()
    winner = ("Blue", "Red")[int(engine.winner[0])]
    assert opened.text("card-title").startswith(f"{winner} wins: ")
    dealt = engine.state.statistics["damage_dealt"][0]
    blue = int(dealt[: len(battle.config.blue)].sum() + 0.5)
    assert re.search(rf"damage\s+{blue}\s", opened("document.getElementById('card-body').innerText"))
    opened.page.click("#decisive")
    opened.wait("echelon.playing && document.getElementById('card').hidden")
    opened.press(" ")
    turn = opened("echelon.time")
    alive, scores = opened("[echelon.scan.alive, echelon.scan.scores]")
    by_elimination = engine.reason[0] == REASONS.index("elimination")
    lead = [(by_elimination and a[0] - a[1]) or (s[0] - s[1]) for a, s in zip(alive, scores, strict=True)]
    ahead = [lead[decision] * (1 if winner == "Blue" else -1) > 0 for decision in range(len(lead))]
    turning = len(ahead) - ahead[::-1].index(False)
    assert turning - 13 <= turn <= turning
    opened.press("End")
    opened.page.click("#card-close")
    assert opened.hidden("card")


def test_the_timeline_says_what_happened_and_leads_there(opened):
    opened.press("Home")
    mark = opened("echelon.scan.marks.find((mark) => mark.kind === 'death')")
    box = opened("(({left, top, height}) => [left, top + height / 2])(echelon.timeline.canvas.getBoundingClientRect())")
    x = box[0] + opened(f"echelon.timeline.across({mark['decision']})") + 3
    opened.page.mouse.move(x, box[1])
    killer, weapon = opened(f"[echelon.panels.name({mark['by']}), '{mark['weapon']}']")
    assert re.fullmatch(rf"\d:\d\d (Blue|Red) \w\d destroyed by {killer}, {weapon}", opened.text("tip"))
    opened.page.mouse.down()
    opened.page.mouse.up()
    assert opened.decision == mark["decision"]
    assert opened.text("tip").split(" ", 1)[1] in opened("document.getElementById('feed').innerText")


def test_the_target_of_the_selected_mech_is_marked(opened, battle):
    decision, mech = next(
        (decision, mech)
        for decision, engine in enumerate(battle.play())
        for mech in range(5)
        if engine.state.mechs["target"][0, mech] >= 5 and engine.state.mechs["alive"][0, mech]
    )
    opened(f"location.hash = '#t={decision}&mech={mech}'")
    opened.wait(f"echelon.selected === {mech} && echelon.time === {decision}")
    assert opened("[echelon.target >= 5, echelon.weapon.range > 0, echelon.weapon.arc > 0]") == [True] * 3
    yellow = """(() => {
        const { canvas } = echelon.overlay
        const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d')
        copy.drawImage(canvas, 0, 0)
        const pixels = copy.getImageData(0, 0, canvas.width, canvas.height).data
        let found = 0
        for (let i = 0; i < pixels.length; i += 4) {
            if (pixels[i] > 240 && pixels[i + 1] > 180 && pixels[i + 2] < 90 && pixels[i + 3] > 200) found += 1
        }
        return found
    })()"""
    opened("echelon.overview(); echelon.draw(0)")
    assert opened(yellow) > 40  # the brackets
    opened("echelon.selected = -1; echelon.draw(0)")
    assert opened(yellow) < 10
    opened(f"echelon.select({mech})")
    opened.page.click("#details button.weapon >> nth=1")
    assert opened("echelon.weapon.name") == opened("document.querySelectorAll('#details button.weapon')[1].textContent")


@pytest.mark.parametrize("size", [(390, 844), (1280, 720), (1920, 1080)])
def test_every_control_can_be_reached_at_every_width(open_page, battle, tmp_path, size):
    write_page(tmp_path / "battle.html", battle)
    page = open_page(tmp_path / "battle.html", size)
    page.press("Home", "3")
    width, height = size
    boxes = page("[...document.querySelectorAll('button')].map((each) => [each.id, each.getBoundingClientRect()])")
    shown = {name: box for name, box in boxes if box["width"] > 0}
    assert {"play", "kill-next", "follow", "fog", "top", "sound", "help", "close"} <= shown.keys()
    for name, box in boxes:
        if box["width"] > 0:
            assert box["left"] >= 0 and box["right"] <= width and box["bottom"] <= height, name
    for name, before, after in (("follow", False, True), ("fog", False, True), ("top", False, True)):
        state = f"document.getElementById('{name}').ariaPressed === 'true'"
        assert page(state) is before
        page.page.click(f"#{name}")
        assert page(state) is after
    page.page.click("#help")
    page.page.click("#keys-close")
    assert page.hidden("keys")
    side = page("echelon.world.battle.size")
    corners = f"[[0, 0], [0, {side}], [{side}, 0], [{side}, {side}]].map(([x, y]) => echelon.overlay.spot(x, y, 0))"
    page("echelon.fromAbove = true; echelon.top(); echelon.draw(0)")
    spots = page(corners)
    assert all(spots) and all(-1 <= spot["x"] <= width + 1 for spot in spots)  # the whole map is in the picture


def test_the_inspector_names_what_is_off_in_the_battle(shown):
    page = shown(recorded(CONFIGS["disabled"]))
    page("location.hash = '#t=3&mech=4'")
    page.wait("echelon.selected === 4 && echelon.time === 3")
    page.press("ArrowRight")
    page.page.click("#tab-action")
    details = page("document.getElementById('details').innerText")
    actions = recorded(CONFIGS["disabled"]).actions[4, 4]
    for entry in Action:
        off = entry >= Action.TARGET_0 and entry is not Action.DISPLAY_NEAREST and actions[entry] > 0
        assert bool(re.search(rf"{entry.name}\s+\S+\s+refused: off in this battle", details, re.IGNORECASE)) == off


def change(path, part, edit):
    """Edit one of the base64 parts of a page."""
    text = path.read_text()
    pattern = rf'(<script type="application/octet-stream" id="{part}">)([^<]*)'
    path.write_text(re.sub(pattern, lambda found: found[1] + edit(found[2]), text, count=1))


def edited_header(**changes):
    def edit(text):
        line, _, body = gzip.decompress(base64.b64decode(text)).partition(b"\n")
        data = gzip.compress(json.dumps(json.loads(line) | changes).encode() + b"\n" + body)
        return base64.b64encode(data).decode()

    return edit


@pytest.mark.parametrize(
    ("part", "edit", "message"),
    [
        ("replay", lambda text: text[: len(text) // 2], "The replay is damaged or truncated."),
        ("replay", edited_header(version=7), "The replay has version 7 of the format, this page reads 2."),
        ("replay", edited_header(format="<b>x</b>"), "This is not a replay of Echelon."),
        *(
            ("replay", edited_header(**{name: value}), "The header of the replay was altered")
            for name, value in {
                "config": {},
                "players": ["right", "left"],
                "winner": "right",
            }.items()
        ),
        ("replay", lambda _: base64.b64encode(gzip.compress(bytes(70_000_000))).decode(), "larger than"),
        ("world", lambda text: text[:400], "The world is damaged or truncated."),
        ("engine", lambda _: base64.b64encode(gzip.compress(b"no module")).decode(), "The engine is damaged"),
    ],
)
def test_damaged_pages_say_what_is_wrong(open_page, tmp_path, part, edit, message):
    write_page(tmp_path / "battle.html", recorded())
    change(tmp_path / "battle.html", part, edit)
    assert message in open_page(tmp_path / "battle.html")("document.getElementById('message').innerText")


def test_hostile_names_are_shown_as_texts(shown):
    names = "<img src=x onerror=alert(1)>", "</script><script>document.title='broken'</script>"
    page = shown(dataclasses.replace(recorded(), players=names))
    assert page("document.querySelectorAll('img').length") == 0
    assert page("document.querySelector('#roster-blue h2').textContent") == names[0]
    assert "broken" in page("document.title") and page("document.title") != "broken"
