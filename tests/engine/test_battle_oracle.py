"""Whole battles against the oracle, decision by decision; half of them start in close contact."""

from collections import Counter

import numpy as np
import pytest

from echelon_env.engine.state import EVENT_KINDS
from oracles.compare import play
from oracles.configs import ALL_OFF, HIDDEN_ZONE, odd_config, small_config
from oracles.situations import arranged_engine, brawling_actions, random_actions
from oracles.world import GRAZING, load

CONFIGS = {
    "game": small_config(max_steps=200),
    "odd": odd_config(),
    "safe": small_config(max_steps=60, combat={"friendly_fire": False}, observability="full"),
    "mortal": odd_config(dead_agents="terminate"),
    "disabled": odd_config(abilities=ALL_OFF),
    "aimless": small_config(max_steps=100, abilities={"target_choice": False, "electronics": False}),
    "hidden": small_config(max_steps=60, **HIDDEN_ZONE),
    "alone": odd_config(abilities={"messages": False, "display": False, "intel": False}),
    "persist": small_config(dead_agents="persist", time_limit="terminate", max_steps=60, zone={"score_to_win": 4.0}),
}
SLOW = {"alone": pytest.mark.slow, "disabled": pytest.mark.slow}  # test_abilities.py has their rules, too


@pytest.mark.long
@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOW.get(name, ())) for name in CONFIGS])
def test_complete_battles(name):
    """The oracle continues from its own state; it takes the engine's state only after a decision within rounding."""
    config = CONFIGS[name]
    rng = np.random.default_rng(3)
    engine = arranged_engine(config, 4, seed=13)
    worlds = {battle: load(engine.state, battle, config) for battle in range(engine.num_battles)}
    kinds: Counter[str] = Counter()
    cases: Counter[str] = Counter()
    played = grazing = 0
    while not engine.battle_over.all():
        brawl = [brawling_actions(world, rng) for world in worlds.values()]
        actions = np.stack([*brawl[:3], random_actions(rng, config.num_mechs)])
        given = actions.copy()
        decisions, found = play(engine, actions, worlds)
        assert not found, "\n".join(found[:20])
        np.testing.assert_array_equal(actions, given)
        for decision in decisions:
            kinds.update(EVENT_KINDS[event[0]] for event in decision.after.log)
            cases += decision.after.cases
            played += 1
            if decision.after.cases[GRAZING]:
                grazing += 1
                worlds[decision.battle] = load(engine.state, decision.battle, config)
    expected = {"shot", "hit", "splash", "impact", "smoke", "paint", "death"}
    if name == "game":
        expected = set(EVENT_KINDS) - {"interception", "legged"}  # too rare for a few battles
    assert set(kinds) >= expected, expected - set(kinds)
    rare = {"message of a pack-mate", "silent because it is dead"}
    spirited = {"odd": {"team spirit"}, "mortal": {"team spirit", "dead mechs get nothing of the team's mean"}}
    rare |= spirited.get(name, set())
    if not config.abilities.messages:
        rare -= {"message of a pack-mate", "silent because it is dead"}
    if not config.abilities.intel:
        rare = rare | {"sightings that are not kept"}
    if not config.abilities.target_choice:
        rare.add("ineffective choice of a target")
    assert set(cases) >= rare, rare - set(cases)
    assert bool(cases["jammed"]) == config.abilities.electronics
    assert grazing < 0.05 * played
    assert (engine.state.battles["lost_events"] == 0).all()
