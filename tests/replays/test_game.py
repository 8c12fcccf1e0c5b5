"""Games: pages in which a person plays. `test_game_page` plays them in a browser."""

import base64
import gzip
import json
import re

import pytest

from echelon_env import make_config
from echelon_env.config.schema import ConfigError
from echelon_env.replays import Game


def unpacked(data):
    line, _, memory = gzip.decompress(data).partition(b"\n")
    return json.loads(line), memory


def part(page, name):
    found = re.search(rf'<script type="application/octet-stream" id="{name}">([^<]*)</script>', page)
    return [base64.b64decode(text) for text in found[1].split()]


def test_a_page_has_its_world_and_the_starts_of_its_maps():
    game = Game("skirmish-open", mech="medium", seed=3)
    page = game.page(3)
    (world,), starts = part(page, "world"), part(page, "starts")
    document, memory = unpacked(world)
    assert len(memory) == document["memory"]["bytes"]
    assert document["play"]["mech"] == make_config("skirmish-open").blue.index("medium")
    assert set(document["calls"]) == {"step", "possibilities", "blue", "red"}
    abouts, memories = zip(*map(unpacked, starts), strict=True)
    assert [about["number"] for about in abouts] == [1, 2]
    assert {len(each) for each in memories} == {document["memory"]["changing"]}
    seeds = {json.loads(about["header"])["seed"] for about in (document["play"]["start"], *abouts)}
    assert len(seeds) == 3
    assert part(page, "replay") == []
    assert "connect-src" not in page
    assert "connect-src 'self'" in game.page(1, loads=True)
    assert [game.start(number) for number in (1, 2)] == starts, "at any time"
    assert game.start(1) != Game("skirmish-open", mech="medium", seed=4).start(1)


def test_the_mech_decides_who_is_on_its_team():
    red = Game("skirmish-open", mech="red_1", opponent="novice", teammate="veteran")
    assert red.players == ("novice", "person and veteran")
    assert unpacked(part(red.page(1), "world")[0])[0]["play"]["mech"] == 6
    assert Game("skirmish-open", mech="none", opponent="novice").players == ("competent", "novice")
    assert Game("duel-open", opponent="idle").players == ("person", "idle")


def test_players_of_one_policy_share_its_weights():
    def world(opponent, teammate):
        game = Game("duel-open", opponent=opponent, teammate=teammate)
        return unpacked(part(game.page(1), "world")[0])

    (both, shared), (_, single) = world("champion", "champion"), world("champion", "idle")
    assert [both["calls"][team][0] for team in ("blue", "red")] == ["act_by_network", "act_by_network"]
    assert len(shared) < 1.1 * len(single)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scenario": "skirmsh"}, "skirmsh"),
        ({"opponent": "expret"}, "did you mean 'expert'"),
        ({"opponent": "expert@fire_rate=0.5"}, "opponent: expected a level, 'champion', 'idle' or 'policy:PATH'"),
        ({"teammate": "self"}, "teammate: 'self' is for training only"),
        ({"mech": "blu_0"}, "unknown mech 'blu_0'; did you mean 'blue_0'"),
        ({"mech": "scout", "scenario": "duel"}, "unknown mech 'scout'"),
        ({"seed": -1}, "seed: expected an integer of at least 0, got -1"),
        ({"opponent": "policy:nothing-here"}, "nothing-here"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        Game(**arguments)


def test_bad_numbers_of_battles_are_refused():
    game = Game("duel-open")
    for number in (-1, 2**20, 1.5):
        with pytest.raises((ConfigError, TypeError), match="number"):
            game.start(number)
    for maps in (0, 1_001):
        with pytest.raises(ConfigError, match="maps"):
            game.page(maps)
