"""Observations after a reset and in contact, for every scenario; the bounds of every feature."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from echelon_env.config.catalog import DEFAULT_CATALOG, HEAVY
from echelon_env.config.scenario import make_config
from echelon_env.engine.core import BattleEngine
from echelon_env.engine.state import NO_MECH
from echelon_env.layout.observations import STREAMS, feature_names, observation_bounds
from oracles.compare import play
from oracles.configs import HIDDEN_ZONE, odd_config, small_config
from oracles.observation import observe
from oracles.sensing import look_around
from oracles.situations import arranged_engine, brawling_actions
from oracles.world import GRAZING, load


def assert_within_bounds(observations):
    low, high = observation_bounds()
    outside = np.argwhere((observations < low) | (observations > high))
    names = feature_names()
    assert not len(outside), [(names[index[-1]], float(observations[tuple(index)])) for index in outside[:10]]


AFTER_RESET = {
    "skirmish": make_config("skirmish"),
    "company": make_config("company"),
    "odd": odd_config(),
    "hidden": small_config(**HIDDEN_ZONE),
}


@pytest.mark.parametrize("name", AFTER_RESET)
def test_observations_after_reset(name):
    config = AFTER_RESET[name]
    engine = BattleEngine(config, 2)
    observations = engine.reset([1, 2])
    assert_within_bounds(observations)
    for battle in range(2):
        world = load(engine.state, battle, config)
        contacts = [list(mech.contacts) for mech in world.mechs]
        seen = look_around(world)
        if world.cases[GRAZING]:
            continue
        assert [mech.contacts for mech in world.mechs] == contacts
        for mech in world.mechs:
            expected = observe(world, mech, seen)
            np.testing.assert_allclose(observations[battle, mech.index], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("scenario", ["battle", pytest.param("company", marks=pytest.mark.long)])
def test_more_enemies_and_mates_than_rows(scenario):
    classes = tuple(replace(each, contact_slots=1) if each is HEAVY else each for each in DEFAULT_CATALOG.mech_classes)
    catalog = replace(DEFAULT_CATALOG, mech_classes=classes)
    config = make_config(scenario, observability="full", catalog=catalog)
    engine = arranged_engine(config, 2, seed=4, arena=30.0)
    rng = np.random.default_rng(0)
    compared, cases = 0, Counter()
    for _ in range(3):
        actions = np.stack([brawling_actions(load(engine.state, battle, config), rng) for battle in range(2)])
        decisions, found = play(engine, actions)
        assert not found, "\n".join(found[:20])
        cases += sum((decision.after.cases for decision in decisions), Counter())
        compared += sum(not decision.after.cases[GRAZING] for decision in decisions)
        assert_within_bounds(engine.observations)
    assert compared > 2
    filled = (engine.state.mechs["contacts"] != NO_MECH).sum(axis=-1)
    assert filled.max() == (10 if scenario == "battle" else 12)
    assert engine.observations[..., STREAMS["squad_mask"].part].sum(axis=-1).max() == 9
    assert engine.observations[..., STREAMS["intel_mask"].part].sum(axis=-1).max() == 8
    assert cases["more intel than rows"]
