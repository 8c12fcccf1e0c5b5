"""The five levels in every scenario and configuration, and their strength."""

from dataclasses import replace
from itertools import combinations, cycle, pairwise

import numpy as np
import pytest
from scipy import stats

from echelon_env import BattleEngine, ConfigError, make_config, opponents, scenarios
from echelon_env.config.battle import BattleConfig
from echelon_env.config.catalog import DEFAULT_CATALOG
from echelon_env.layout.observations import Self
from echelon_env.opponents import LEVELS, Scripted
from opponents.contests import Chance, Idle, fight
from support.playing import scripted_actions

OWN_NAMES = {kind.name: f"my {kind.name}" for kind in DEFAULT_CATALOG.mech_classes}
OWN_CATALOG = replace(
    DEFAULT_CATALOG,
    mech_classes=tuple(replace(kind, name=OWN_NAMES[kind.name]) for kind in DEFAULT_CATALOG.mech_classes),
)
ROSTER = ("heavy", "medium", "light", "scout")
CONFIGS = {
    "no weapons": {"banned_weapons": tuple(weapon.name for weapon in DEFAULT_CATALOG.weapons)},
    "no guns": {"banned_weapons": ("laser", "flamer", "missiles", "gauss", "autocannon")},
    "own class names": {
        "catalog": OWN_CATALOG, "blue": tuple(OWN_NAMES[name] for name in ROSTER), "red": tuple(OWN_NAMES.values())
    },
    "turrets": {
        "catalog": replace(
            DEFAULT_CATALOG,
            mech_classes=tuple(replace(k, top_speed=0.0, turn_rate=0.0) for k in DEFAULT_CATALOG.mech_classes),
        )
    },
    "every tick": {"decision_repeat": 1},
    "now and then": {"decision_repeat": 10},
    "hardly ever": {"decision_repeat": 100},
    "tiny map": {"terrain": {"size": 30}, "blue": ("light",), "red": ("scout",)},
    "large map": {"terrain": {"size": 128}},
    "unequal teams": {"blue": ("heavy",), "red": ROSTER},
    "coarse sight": {"sensors": {"terrain_cell": 0.25, "radar_range": 0.0}},
    "the dead stay": {"dead_agents": "persist"},
}  # fmt: skip


def play_on(config, level, decisions=40):
    """Let a level play against itself, and check all its actions."""
    engine = BattleEngine(config, 2)
    players = tuple(opponents.make(level, seed, config) for seed in range(2))
    engine.reset([5, 6])
    for _ in range(decisions):
        actions = scripted_actions(engine, players)
        assert np.isfinite(actions).all()
        assert np.abs(actions).max() <= 1.0
        assert not actions[engine.observations[..., Self.ALIVE] <= 0].any()
        engine.step(actions)
    return engine


@pytest.mark.parametrize("scenario", scenarios())
def test_every_scenario_is_played(scenario):
    for level, observability in zip(LEVELS, cycle(("partial", "full"))):
        play_on(make_config(scenario, observability=observability), level, 10)


@pytest.mark.parametrize("changes", CONFIGS.values(), ids=CONFIGS)
def test_odd_configurations_are_played(changes):
    for level in ("trivial", "novice", "expert"):
        play_on(make_config("skirmish", **changes), level, 20)


def test_levels_have_names_and_invalid_names_and_seeds_are_refused():
    assert list(LEVELS) == ["trivial", "novice", "competent", "veteran", "expert"]
    assert repr(opponents.make("veteran", 3, "battle")) == "Scripted('veteran', seed=3)"
    for make in (opponents.make, Scripted):
        with pytest.raises(ValueError, match=r"unknown opponent 'trival'; did you mean 'trivial'\?"):
            make("trival", 0, BattleConfig())
        for seed in (-1, 2**64, 0.5, True, None):
            with pytest.raises(ValueError, match="seed: expected an integer in"):
                make("trivial", seed, BattleConfig())
    with pytest.raises(ValueError, match="unknown opponent"):
        opponents.make(["trivial"], 0, "battle")


def test_a_configuration_can_be_a_name_a_dict_or_an_object():
    rows = BattleEngine("duel", 1).reset([3])[0]
    acted = [
        opponents.make("expert", 1, config).act(rows).tobytes()
        for config in (make_config("duel"), "duel", make_config("duel").to_dict())
    ]
    assert acted[0] == acted[1] == acted[2]
    with pytest.raises(ConfigError, match="unknown scenario 'dual'; did you mean 'duel'"):
        opponents.make("expert", 1, "dual")
    for nothing in (3, None, BattleConfig):
        with pytest.raises(ConfigError, match="expected a scenario's name or file, a BattleConfig or its dict, got"):
            opponents.make("expert", 1, nothing)


def score(scenario, first, second, battles=40, seed=10_000, **overrides):
    """Results (battles,) of a level or policy against another."""
    engine = BattleEngine(scenario, battles, time_limit="terminate", **overrides)
    players = [opponents.make(p, 1, engine.config) if isinstance(p, str) else p for p in (first, second)]
    return fight(engine, *players, seed=seed)


@pytest.mark.parametrize(("scenario", "passive"), [("duel", Idle), ("skirmish", Chance)])
def test_trivial_beats_idle_and_random_players(scenario, passive):
    assert (score(scenario, "trivial", passive()) > 0).sum() >= 34  # of 40; the published bar is 90 %


@pytest.mark.long
@pytest.mark.parametrize(("weaker", "stronger"), [*pairwise(LEVELS)])
def test_each_level_beats_the_one_below(weaker, stronger):
    wins = int((score("skirmish", stronger, weaker) > 0).sum())  # the published bar is 70 % of 200
    assert stats.binomtest(wins, 40, alternative="greater").pvalue < 0.01


@pytest.mark.slow
@pytest.mark.parametrize(("weaker", "stronger"), [*combinations(LEVELS, 2)])
def test_the_order_of_the_levels_is_transitive(weaker, stronger):
    wins = int((score("duel", stronger, weaker, battles=100) > 0).sum())
    assert stats.binomtest(wins, 100, alternative="greater").pvalue < 0.01
