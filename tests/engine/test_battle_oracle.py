"""Whole battles, decision by decision: the engine against the oracle, half of them begun in close contact."""

from collections import Counter

import numpy as np
import pytest

from echelon_env.engine.state import DEATH, HIT, SHOT, SHUTDOWN
from oracles.compare import play
from oracles.sensing import GRAZING
from oracles.situations import arranged_engine, brawling_actions, odd_config, random_actions, small_config
from oracles.world import load

CONFIGS = {
    "game": small_config(max_steps=200),
    "odd": odd_config(),
    "persist": small_config(dead_agents="persist", time_limit="terminate", max_steps=60, zone={"score_to_win": 4.0}),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_complete_battles(name):
    config = CONFIGS[name]
    rng = np.random.default_rng(3)
    engine = arranged_engine(config, 4, seed=11)
    kinds: Counter[int] = Counter()
    played = grazing = 0
    while not engine.battle_over.all():
        worlds = [load(engine.state, battle, config) for battle in range(engine.num_battles)]
        brawl = [brawling_actions(world, rng) for world in worlds]
        actions = np.stack([*brawl[:3], random_actions(rng, config.num_mechs)])
        given = actions.copy()
        decisions, found = play(engine, actions)
        assert not found, "\n".join(found[:20])
        np.testing.assert_array_equal(actions, given)
        for decision in decisions:
            kinds.update(event[0] for event in decision.after.log)
            played += 1
            grazing += decision.after.cases[GRAZING] > 0
    assert min(kinds[kind] for kind in (SHOT, HIT, DEATH, SHUTDOWN)) > 0
    assert grazing < 0.05 * played
    assert (engine.state.battles["lost_events"] == 0).all()
