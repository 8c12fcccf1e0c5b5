"""Games in a browser: whole matches, by keys and by the players of the page."""

import re
import threading

import numpy as np
import pytest

from echelon_env import BattleEngine, make_config
from echelon_env.cli import play_server
from echelon_env.cli.play_server import PlayServer
from echelon_env.config.skill import LEVELS
from echelon_env.evaluate import BattleNoise, baseline, evaluation_seed
from echelon_env.layout.actions import Action
from echelon_env.opponents import make
from echelon_env.replays import Game, read_replay
from replays.battles import CONFIGS
from replays.pages import Page, marks

pytestmark = marks


@pytest.fixture
def opened(open_page, tmp_path):
    """Opens the page of a game."""

    def opened(*args, maps=2, size=(1280, 720), **options):
        Game(*args, **options).write(tmp_path / "game.html", maps)
        return open_page(tmp_path / "game.html", size)

    return opened


def saved(page, path):
    """The replay that the page saves."""
    with page.page.expect_download() as download:
        page.page.click("#save")
    download.value.save_as(path)
    assert "Saved" in page.text("note")
    return read_replay(path)


def play_to_the_end(page):
    page("while (echelon.driver.running) echelon.driver.game.decide(null)")
    page("echelon.goTo(echelon.simulation.decisions)")
    page("echelon.driver.showEnd()")


def test_a_match_played_with_keys(opened, tmp_path):
    page = opened(make_config("duel", max_steps=80), opponent="novice", seed=2)
    assert "You drive Blue M0" in page.text("note")
    assert (page.decision, page("echelon.playing")) == (0, False)
    page.press("Home", "v", "t", "f", " ", "3")  # nothing of this works behind the menu
    assert (page.decision, page("echelon.playing"), page("echelon.camera.elevation < 1")) == (0, False, True)
    page.press("Enter", "+", "+", "+", "+")
    assert page.hidden("menu") and not page.hidden("cockpit")
    page.page.keyboard.down("w")
    page.page.mouse.move(640, 200)
    page.page.mouse.down()
    page.wait("!echelon.driver.running || echelon.after.decision > 40")
    page.page.keyboard.up("w")
    page.press("Tab")
    page.wait("!echelon.driver.running && !document.getElementById('menu').hidden")
    page.page.mouse.up()
    replay = saved(page, tmp_path / "mine.replay")
    assert replay.first_difference() is None
    assert replay.players == ("person", "novice")
    assert replay.actions[10:20, 0, Action.THROTTLE].min() == 1.0
    assert replay.actions[10:20, 0, Action.PRIMARY].min() == 1.0
    *_, engine = replay.play()
    assert engine.battle_over[0]
    title = page("document.querySelector('#menu h2').textContent")
    assert title.startswith({0: "Won", 1: "Lost", -1: "Draw"}[int(engine.winner[0])])
    page.press("Escape", "Home")  # the battle can be looked at
    assert (page.decision, page.hidden("menu")) == (0, True)
    page.press("p")
    again = saved(page, tmp_path / "again.replay")
    assert again.voxels_digest == replay.voxels_digest
    assert again.first_difference() is None
    page.press("Escape", "1", "End")
    assert (page.decision, page("echelon.selected")) == (replay.decisions, 0)
    page.press("p", "r")
    assert (page.decision, page("echelon.driver.running")) == (0, True)


def test_the_person_sees_what_the_mech_senses(opened):
    page = opened("skirmish", opponent="expert", mech="medium", seed=4)
    places = "echelon.scene.places.map((place) => place.shown)"
    own = f"{places}.join() === '{','.join(5 * ['true'] + 5 * ['false'])}'"
    page.wait(own)  # behind the menu, too
    page.press("Enter")
    page.wait("echelon.after.decision > 30")
    page.press("p")
    shown = page(places)
    assert shown == page("echelon.driver.game.seen()")
    assert shown[:5] == [True] * 5 and not all(shown)
    assert page("[echelon.fog, echelon.selected, echelon.lit !== null]") == [True, 1, True]
    bars = "[...document.querySelectorAll('#roster-red .bar.armour i')].map((bar) => bar.style.width)"
    assert [width == "0%" for width in page(bars)] == [not seen for seen in shown[5:]]
    page.press("Escape", "ArrowRight", "Home", "End", "v", "t", "2")  # none of these is for a person who drives
    assert page("[echelon.fog, echelon.selected, echelon.follows, echelon.time <= echelon.simulation.decisions]") == [
        *(True, 1, True, True)
    ]
    page.press("i")
    assert not page.hidden("inspector") and "Blue M1" in page.text("selected")
    page.page.click("#tab-senses")
    page.press("Escape")
    assert page.hidden("inspector") and page.hidden("keys") and page.hidden("menu")
    page.press("?")  # the keys of a game are in its menu
    assert page.hidden("keys") and not page.hidden("menu")
    page.press("Escape")
    paused = page.decision
    page.press("p", " ")
    page.page.wait_for_timeout(400)
    assert page.decision <= paused + 1  # the space bar does not start it behind the menu
    page.page.click("#play")
    assert page.hidden("menu")
    page.press("Escape", "r")
    page.wait(own)


def test_the_autopilot_and_another_mech_after_the_own_one(opened, tmp_path):
    page = opened("skirmish-open", opponent="expert", teammate="expert", mech="blue_4", seed=3)
    # the mech dies in decision 48 of 217, as the first one
    page("echelon.driver.game.autopilot = true")
    page.press("Enter", "+", "+", "+", "+")
    page.wait("!echelon.after.mechs[4].alive")
    assert page.hidden("cockpit") and "Your mech is destroyed" in page.text("banner")
    page.press("p")
    shown = "echelon.scene.places.map((place, row) => place.shown && echelon.after.mechs[row].alive)"
    seen = "echelon.driver.game.seen().map((seen, row) => seen && echelon.after.mechs[row].alive)"
    assert page(shown) == page(seen)  # what the first living team-mate sees, and no more
    assert page("[echelon.selected, echelon.fog]") == [0, True]
    page.press("Escape", "v")
    page.page.click("#roster-red button >> nth=0")  # of the other team
    assert page("[echelon.driver.drives, echelon.fog]") == [False, True]
    assert not page.hidden("banner")
    page.page.click("#roster-blue button >> nth=1")
    assert page("[echelon.driver.game.mech, echelon.driver.drives]") == [1, True]
    assert "autopilot" in page.text("cockpit")
    page.press("o")
    assert "autopilot" not in page.text("cockpit")
    taken = page.decision
    page.page.keyboard.down("d")
    page.wait(f"echelon.after.decision > {taken} + 6")
    play_to_the_end(page)
    replay = saved(page, tmp_path / "taken.replay")
    assert replay.first_difference() is None
    alive = replay.actions[taken + 2 :, 1, Action.STRAFE]
    assert alive[:3].tolist() == [-1.0, -1.0, -1.0]
    seed, config = evaluation_seed(3, 0), make_config("skirmish-open")
    expected = actions_here(config, (make("expert", seed, config), make("expert", seed + 1, config)), seed)
    np.testing.assert_array_equal(replay.actions[:48], expected[:48])


def test_the_level_of_the_opponent_is_chosen_in_the_page(opened, tmp_path):
    config = make_config("duel", max_steps=80)
    page = opened(config, opponent="novice", teammate="veteran", mech="none", seed=5)
    assert page("document.querySelector('#menu #again')") is None  # nothing has happened yet
    assert page("[...document.querySelectorAll('#level option')].map((each) => each.textContent)") == [*LEVELS]
    page.page.select_option("#level", label="expert")
    assert "v expert" in page("document.querySelector('#menu h2').textContent")
    play_to_the_end(page)
    replay = saved(page, tmp_path / "expert.replay")
    assert replay.first_difference() is None
    assert replay.players == ("veteran", "expert")
    seed = evaluation_seed(5, 0)
    expected = actions_here(config, (make("veteran", seed, config), make("expert", seed + 1, config)), seed)
    np.testing.assert_array_equal(replay.actions, expected)
    page.page.select_option("#level", label="competent")
    assert "from the next battle on" in page.text("note")
    page.press("n")
    page.wait("echelon.driver.game.start.number === 1")
    play_to_the_end(page)
    replay = saved(page, tmp_path / "competent.replay")
    assert replay.first_difference() is None and replay.players == ("veteran", "competent")
    seed = evaluation_seed(5, 1)
    expected = actions_here(config, (make("veteran", seed, config), make("competent", seed + 1, config)), seed)
    np.testing.assert_array_equal(replay.actions, expected)


def test_the_first_battle_teaches_by_doing(opened):
    page = opened("skirmish", mech="medium", seed=4)
    lesson = "[...document.querySelectorAll('#hint p')].findIndex((each) => !each.hidden)"
    assert page.hidden("hint")
    page.press("Enter")
    page.wait("!document.getElementById('hint').hidden")
    assert page(lesson) == 0
    page.page.keyboard.down("w")
    page.wait(f"{lesson} > 0")
    page.page.keyboard.up("w")
    assert not page.hidden("minimap")
    page.press("p", "n")
    page.wait("echelon.driver.game.start.number === 1")
    page.press("Enter")
    page.wait("echelon.after.decision > 2")
    assert page.hidden("hint")


def actions_here(config, policies, seed):
    """The actions of two players, blue's and red's, in a battle that is simulated here."""
    engine, actions = BattleEngine(config), []
    observations = engine.reset([seed])
    blue = len(config.blue)
    for policy, count in zip(policies, (blue, engine.num_mechs - blue), strict=True):
        policy.reset(np.ones(count, np.bool_))
    while not engine.battle_over[0]:
        teams = observations[0, :blue].copy(), observations[0, blue:].copy()
        rows = np.concatenate([policy.act(team) for policy, team in zip(policies, teams, strict=True)])
        observations = engine.step(rows[None])[0]
        actions.append(rows)
    return np.array(actions)


@pytest.mark.parametrize("name", CONFIGS)
def test_players_in_the_page_act_as_they_do_here(opened, tmp_path, name):
    config = CONFIGS[name]
    page = opened(config, opponent="champion", teammate="veteran", mech="none", seed=7)
    play_to_the_end(page)
    replay = saved(page, tmp_path / "watched.replay")
    assert replay.first_difference() is None
    seed = evaluation_seed(7, 0)
    assert replay.seed == replay.map_seed == seed
    trained = baseline("champion").make(config, BattleNoise([seed], [1], len(config.red)))
    expected = actions_here(config, (make("veteran", seed, config), trained), seed)
    np.testing.assert_array_equal(replay.actions, expected)


def test_a_damaged_next_map_is_refused(open_page, tmp_path):
    Game("duel-open").write(tmp_path / "game.html", 2)
    text = (tmp_path / "game.html").read_text()
    (tmp_path / "game.html").write_text(re.sub(r'(id="starts">)[^<]{200}', r"\1" + 200 * "A", text))
    page = open_page(tmp_path / "game.html")
    page.press("n")
    page.wait("document.getElementById('note').className === 'bad'")
    assert page.text("note") == "The battle is damaged or truncated."
    page.press("Enter")
    page.wait("echelon.after.decision > 1")


def test_a_served_game_goes_on_and_ends_with_its_page(browser, monkeypatch):
    monkeypatch.setattr(play_server, "GRACE", 5.0)
    monkeypatch.setattr(play_server, "BEAT", 0.1)
    with PlayServer(Game("duel-open", opponent="novice")) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        page = Page(browser, server.url)
        for number in (1, 2):
            page.press("n")
            page.wait(f"echelon.driver.game.start.number === {number}")
        page.page.reload()
        page.wait("document.body.dataset.ready")
        page.page.wait_for_timeout(6_000)
        assert thread.is_alive()
        assert page.said == []
        page.page.context.close()
        thread.join(30)
        assert not thread.is_alive()
