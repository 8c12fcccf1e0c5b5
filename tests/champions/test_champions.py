"""The opponent `champion`: which policy it is, and that it plays everywhere without PyTorch."""

import gymnasium
import numpy as np
import pytest

from echelon_env import BattleVectorEnv, ConfigError, ControlledBattles, make_config, opponents, parallel_env, scenarios
from echelon_env.champions import CHAMPIONS, champion_folder, champion_of, policy_path
from echelon_env.config import Opponent, Opponents
from echelon_env.evaluate import baseline, evaluation_seed, named_player, play_match
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.opponents import Handicap, Mixture
from echelon_env.wrappers import TeamVersusPolicy
from opponents.contests import recorded, think


def test_the_larger_team_decides():
    champions = {name: champion_of(scenario.config) for name, scenario in scenarios().items()}
    assert {name for name, champion in champions.items() if champion == "duel"} == {"duel", "duel-cover", "duel-open"}
    assert {*champions.values()} == {"duel", "skirmish"}
    for mechs, champion in {1: "duel", 2: "skirmish", 8: "skirmish"}.items():
        team = ("scout",) * mechs
        assert champion_of(make_config("duel", red=team)) == champion_of(make_config("duel", blue=team)) == champion


def test_the_grammar():
    champion = Opponent.parse("champion@fire_rate=0.5")
    assert champion.trained and champion.path is None and str(champion) == "champion@fire_rate=0.5"
    assert [Opponent.parse(name).trained for name in ("expert", "self", "policy:x")] == [False, False, True]
    assert Opponents.parse({"policy:x": 1, "champion": 2, "expert": 1}).names == ("expert", "champion", "policy:x")
    assert policy_path(Opponent.parse("expert"), make_config("duel")) is None
    assert policy_path(Opponent.parse("policy:x"), make_config("duel")) == "x"
    assert policy_path(champion, make_config("trio")) == str(champion_folder("skirmish"))
    with pytest.raises(ConfigError, match="unknown opponent 'champoin'; did you mean 'champion'"):
        Opponent.parse("champoin")


@pytest.mark.parametrize("name", CHAMPIONS)
def test_it_acts_as_the_policy_of_its_folder(name):
    config, seen = make_config(name), recorded(name, 6)
    actions = think(opponents.make("champion", 3, config), seen)
    assert np.isfinite(actions).all() and np.abs(actions).max() == pytest.approx(1.0)
    same = opponents.make(f"policy:{champion_folder(name)}", 3, config, num_threads=3)
    np.testing.assert_array_equal(actions, think(same, seen))
    others = [other for other in CHAMPIONS if other != name]
    for other in others:
        foreign = think(opponents.make(f"policy:{champion_folder(other)}", 3, config), seen)
        assert not np.array_equal(actions, foreign)


def test_it_takes_handicaps_and_parts_in_mixtures():
    config, seen = make_config("skirmish"), recorded("skirmish", 12)
    slow = opponents.make("champion@reaction_delay=0.5", 3, config)
    assert isinstance(slow, Handicap)
    delayed, actions = think(slow, seen), think(opponents.make("champion", 3, config), seen)
    assert not delayed[:2].any()
    np.testing.assert_array_equal(delayed[2:], actions[:-2])
    mixture = opponents.make({"champion": 1, "novice": 1}, 4, config)
    assert isinstance(mixture, Mixture)
    mixed = think(mixture, seen)
    rows = mixture.levels == "champion"
    assert rows.any() and not rows.all()
    np.testing.assert_array_equal(mixed[:, rows], think(opponents.make("champion", 4, config), seen)[:, rows])


def test_every_environment_takes_it():
    zeros = np.zeros(ACTION_DIM, np.float32)
    single = gymnasium.make("echelon/Trio-v1", opponent="champion", teammate="champion")
    single.reset(seed=1)
    single.step(zeros)
    vector = BattleVectorEnv("duel", 2, opponent={"champion": 2, "expert": 1})
    vector.reset(seed=1)
    vector.step(np.zeros(vector.action_space.shape, np.float32))
    team = TeamVersusPolicy(parallel_env("duel"), "champion@fire_rate=0.5")
    observations, _ = team.reset(seed=1)
    team.step(dict.fromkeys(observations, zeros))
    battles = ControlledBattles("skirmish", 2, opponent="champion")
    battles.reset([1, 2])
    battles.step(np.zeros((2, 5, ACTION_DIM), np.float32))
    assert np.abs(battles.engine.actions[:, 5:]).max(axis=(1, 2)).all()


def test_as_a_player_it_is_the_champion_of_each_scenario():
    player = baseline("champion")
    assert player is baseline("champion") is named_player("champion")
    assert player.identity.keys() == set(CHAMPIONS)
    assert len(player.trained_maps) > 4_000
    assert baseline("champion", action_mode="deterministic").action_mode == "deterministic"
    config, seeds = make_config("duel", max_steps=60), [evaluation_seed(5, 0)]
    twin = named_player(f"policy:{champion_folder('duel')}")
    found, expected = (play_match(each, baseline("novice"), config, seeds, scenario="x") for each in (player, twin))
    assert found.battles == expected.battles and found.classes == expected.classes
