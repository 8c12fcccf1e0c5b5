"""Observations are team-relative: a mech in the mirror image of a battle, in the other colour, observes the same."""

from dataclasses import replace

import numpy as np
import pytest

from echelon_env.engine.core import BattleEngine
from echelon_env.engine.state import NO_MECH, UNSEEN
from echelon_env.engine.tables import build_tables
from echelon_env.engine.tick import PERCEIVE, step_range
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.layout.observations import STREAMS, feature_names
from oracles.configs import odd_config, small_config
from oracles.mirror import copy_state, exchange_colours, half_turn
from oracles.situations import arranged_engine, brawling_actions
from oracles.stirring import shoot_around
from oracles.world import load

CONFIGS = {
    "even": small_config(dead_agents="persist", terrain={"size": 64, "height": 12}),
    "odd": odd_config(observability="partial", terrain={"size": 71, "height": 9}),  # of unequal rosters, too
}
BATTLES = 6


def perceive(config, state):
    """Observations (B, M, D) of the mechs in a state, which advances as at the end of a decision."""
    tables, battles = build_tables(config), len(state.battles)
    engine = BattleEngine(config, battles)
    arrays, actions = engine.observation_rows, np.zeros((*state.mechs.shape, ACTION_DIM), np.float32)
    places = arrays.places, arrays.array
    step_range(tables, state, actions, engine.out, np.zeros(1, np.int64), *places, 0, battles, 0, PERCEIVE)
    return engine.observations


def played(config):
    """An engine in the middle of battles, half of them in close contact, with all kinds of observable conditions."""
    engine, rng = arranged_engine(config, BATTLES, seed=31, arena=24.0), np.random.default_rng(7)
    for battle in range(BATTLES):
        shoot_around(engine.state, battle, config, rng, 6)
    for _ in range(6):
        engine.step(np.stack([brawling_actions(load(engine.state, b, config), rng) for b in range(BATTLES)]))
    mechs = engine.state.mechs
    mechs["hurt_x"], mechs["hurt_y"] = rng.normal(0, 20, (2, *mechs.shape))
    return engine


@pytest.mark.parametrize("name", CONFIGS)
def test_the_other_team_observes_the_same_in_the_mirror_image(name):
    config = CONFIGS[name]
    engine = played(config)
    mirrored_config = replace(config, blue=config.red, red=config.blue)
    mirrored = exchange_colours(half_turn(engine.state, config), config)
    expected = perceive(config, copy_state(engine.state))
    found = perceive(mirrored_config, mirrored)
    found = np.roll(found, len(config.blue), axis=1)  # in the mirror image the second team comes first
    differing = np.argwhere(~np.isclose(expected, found, rtol=1e-5, atol=1e-5))
    names = feature_names()
    assert not len(differing), [
        (int(b), int(m), names[f], float(expected[b, m, f]), float(found[b, m, f])) for b, m, f in differing[:10]
    ]
    assert_lively(engine, expected)


def assert_lively(engine, observations):
    """The test is not vacuous: every stream is filled, some mechs are dead, maps are rotated in all four ways."""
    living = engine.state.mechs["alive"] == 1
    assert not living.all()
    for stream in STREAMS.values():
        assert observations[..., stream.part][living].any(), stream.name
    assert (engine.state.mechs["contacts"] != NO_MECH).any() and (engine.state.mechs["intel"] != NO_MECH).any()
    assert (engine.state.visible != UNSEEN).any() and engine.state.battles["num_projectiles"].any()
    assert len(np.unique(engine.state.teams["quarter_turns"])) == 4


@pytest.mark.parametrize("name", CONFIGS)
def test_the_mirror_image_of_a_battle_has_the_same_global_state_for_the_other_team(name):
    config = CONFIGS[name]
    engine = played(config)
    mirror = arranged_engine(replace(config, blue=config.red, red=config.blue), BATTLES, seed=31)
    expected = [engine.global_state(team) for team in (0, 1)]
    for own, given in zip(mirror.state, exchange_colours(half_turn(engine.state, config), config), strict=True):
        own[...] = given
    for team in (0, 1):
        np.testing.assert_allclose(mirror.global_state(1 - team), expected[team], rtol=1e-5, atol=1e-5)
