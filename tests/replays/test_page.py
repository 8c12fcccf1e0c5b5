"""Pages of replays in a browser."""

import base64
import dataclasses
import gzip
import json
import re

import numpy as np
import pytest

from echelon_env import make_config
from echelon_env.config.catalog import LASER, MEDIUM, Catalog
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
    assert (tmp_path / "battle.html").stat().st_size < 1_000_000
    assert opened.verified == "equal"
    stated = f"as the file states: players, engine {battle.stamp['engine_hash'][:12]}"
    assert opened.text("verified") == f"{battle.decisions} of {battle.decisions} decisions equal ({stated})"


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
    assert "differs from the recording at decision 8" in page("document.getElementById('verified').textContent")


def test_a_battle_that_was_over_has_the_digest_of_its_voxels(shown):
    assert shown(dataclasses.replace(recorded(), voxels_digest=None)).verified == str(recorded().decisions)


def test_a_replay_of_another_engine_names_both(shown):
    ours, theirs = recorded().stamp["engine_hash"][:12], "0123456789ab"
    stamp = {**recorded().stamp, "engine_hash": theirs + 52 * "0"}
    digests = recorded().digests.copy()
    digests[5] ^= 1  # as if a rule had changed
    for name, replay in (("same", {}), ("other", {"digests": digests})):
        page = shown(dataclasses.replace(recorded(), stamp=stamp, **replay))
        assert f"(as the file states: players, engine {ours}, recorded by {theirs})" in page.text("verified")
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
    heat = engine.observations[0, 1, 6]
    assert re.search(rf"heat\s+{heat:.2f}", texts["observation"], re.IGNORECASE)
    throttle = battle.actions[40, 1, Action.THROTTLE]
    assert re.search(rf"throttle\s+{throttle:.2f}", texts["action"])
    total = engine.reward_components[0, 1].sum()
    assert re.search(rf"all\s+{total:.2f}", texts["reward"])


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
