"""Rules that hold always, over random battles of which half begin with everybody close to everybody."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from echelon_env.engine.core import BattleEngine
from echelon_env.engine.state import MECH, NO_MECH, SHOT, UNSEEN
from echelon_env.observations import observation_bounds
from oracles.movement import mech_overlaps, solid_overlaps
from oracles.situations import (
    brawling_actions,
    gather,
    odd_config,
    random_actions,
    rough_voxels,
    set_voxels,
    small_config,
    stir,
)
from oracles.world import load

BATTLES = 2
DECISIONS = 25
PHASES = (Phase.explicit, Phase.generate)  # a seed does not shrink
ENGINES = {
    name: BattleEngine(config, BATTLES)
    for name, config in {
        "game": small_config(max_steps=20),
        "odd": odd_config(max_steps=1000, zone={"score_to_win": 3.0}),
        "clock": small_config(max_steps=20, time_limit="terminate", observability="full"),
    }.items()
}
LOW, HIGH = observation_bounds()
FLOATS = [name for name in MECH.names or () if MECH[name].kind == "f"]


class Moment(NamedTuple):
    """Copies of what a step changes."""

    mechs: Any
    teams: Any
    battles: Any
    projectiles: Any
    over: Any


def moment(engine):
    state = engine.state
    return Moment(
        state.mechs.copy(),
        state.teams.copy(),
        state.battles.copy(),
        state.projectiles.copy(),
        engine.battle_over.copy(),
    )


def begin(engine, seed, rng):
    """Reset; the last battle is moved to rough terrain in close contact."""
    engine.reset([seed, seed ^ 1])
    battle = BATTLES - 1
    terrain = engine.config.terrain
    set_voxels(engine.state, battle, rough_voxels(rng, terrain.size, terrain.height))
    gather(engine.state, battle, engine.config, rng, arena=14.0)
    stir(engine.state, battle, engine.config, rng)


@pytest.mark.parametrize("name", ENGINES)
@settings(deadline=None, derandomize=True, max_examples=20, phases=PHASES)
@given(seed=st.integers(0, 2**64 - 1))
def test_invariants(name, seed):
    engine = ENGINES[name]
    rng = np.random.default_rng(seed)
    begin(engine, seed, rng)
    for _ in range(DECISIONS):
        before = moment(engine)
        worlds = [load(engine.state, battle, engine.config) for battle in range(BATTLES)]
        draw = random_actions(rng, engine.num_mechs)
        engine.step(np.stack([brawling_actions(world, rng) if rng.random() < 0.7 else draw for world in worlds]))
        check_numbers(engine)
        check_rewards(engine)
        check_flags(engine, before)
        for battle in range(BATTLES):
            if before.over[battle]:
                check_standstill(engine, before, battle)
            else:
                check_places(engine, battle)
                check_bodies(engine, before, battle)
                check_the_dead(engine, before, battle)
                check_the_shut_down(engine, before, battle)


def check_numbers(engine):
    state = engine.state
    for name in FLOATS:
        assert np.isfinite(state.mechs[name]).all(), name
    for array in (state.teams, state.battles):
        for name in array.dtype.names:
            assert np.isfinite(array[name].astype(float)).all(), name
    assert (state.battles["lost_events"] == 0).all()
    assert (state.pending == 0).all()
    observations = engine.out.observations
    assert np.isfinite(observations).all()
    assert (observations >= LOW).all()
    assert (observations <= HIGH).all()


def check_rewards(engine):
    total = engine.reward_components[..., 0].copy()
    for component in range(1, engine.reward_components.shape[-1]):
        total += engine.reward_components[..., component]
    assert total.dtype == np.float32
    np.testing.assert_array_equal(total, engine.out.rewards)
    assert np.isfinite(engine.out.rewards).all()


def check_flags(engine, before):
    terminated, truncated = engine.out.terminated, engine.out.truncated
    assert not (terminated & truncated).any()
    assert not (terminated | truncated)[before.over].any()
    ended = engine.battle_over & ~before.over
    takes_part = (before.mechs["alive"] == 1) | (engine.config.dead_agents == "persist")
    np.testing.assert_array_equal((terminated | truncated)[ended], takes_part[ended])


PER_DECISION = (
    "num_events", "bad_actions", "died", "shutdown_ticks", "damage_dealt", "kills", "hurt_x", "hurt_y"
)  # fmt: skip


def check_standstill(engine, before, battle):
    """Nothing changes but what is counted per decision, which is nothing."""
    after = moment(engine)
    for name in ("mechs", "teams", "battles", "projectiles"):
        now, then = getattr(after, name)[battle], getattr(before, name)[battle]
        for field in now.dtype.names:
            if field in PER_DECISION:
                assert not now[field].any(), field
            else:
                np.testing.assert_array_equal(now[field], then[field], err_msg=field)
    assert not engine.out.rewards[battle].any()


def check_places(engine, battle):
    """Nobody is inside terrain or another mech, below the ground or off the map."""
    world = load(engine.state, battle, engine.config)
    for mech in world.living():
        low, high = mech.box
        assert min(low) >= -1e-9
        assert all(top <= extent + 1e-9 for top, extent in zip(high, world.size, strict=True))
        assert not list(solid_overlaps(world, mech.box)), mech
        assert not mech_overlaps(world, mech, mech.box), mech
        assert -np.pi <= mech.yaw < np.pi
    for shot in world.projectiles:
        assert all(0 <= part <= extent for part, extent in zip(shot.position, world.size, strict=True))


def check_bodies(engine, before, battle):
    mechs, config = engine.state.mechs[battle], engine.config
    kinds = [config.catalog.mech_classes[index] for index in mechs["mech_class"]]
    full = np.array([kind.armour for kind in kinds])
    capacity = np.array([kind.heat_capacity for kind in kinds])
    top_speed = np.array([kind.top_speed for kind in kinds])
    assert (mechs["armour"] <= before.mechs["armour"][battle]).all()
    assert ((mechs["armour"] >= 0) & (mechs["armour"] <= full)).all()
    np.testing.assert_array_equal(mechs["armour"] > 0, mechs["alive"] == 1)
    assert (mechs["heat"] >= 0).all()
    assert (mechs["heat"] <= config.physics.max_heat * capacity).all()
    longest = [
        [0 if weapon is None else config.ticks(weapon.cooldown) for weapon in mech.weapons]
        for mech in load(engine.state, battle, config).mechs
    ]
    started = np.maximum(longest, before.mechs["cooldown"][battle])
    assert ((mechs["cooldown"] >= 0) & (mechs["cooldown"] <= started)).all()
    assert (np.hypot(mechs["vx"], mechs["vy"]) <= top_speed * (1 + 1e-9)).all()
    lost = before.mechs["armour"][battle] - mechs["armour"]
    for team in range(2):
        own = mechs["team"] == team
        assert mechs["damage_dealt"][own].sum() == pytest.approx(lost[~own].sum(), abs=1e-9)
        assert mechs["kills"][own].sum() == pytest.approx(mechs["died"][~own].sum(), abs=1e-9)
        assert engine.state.teams["mechs_alive"][battle, team] == mechs["alive"][own].sum()


def check_the_dead(engine, before, battle):
    """They neither move nor act nor see nor come back, and nobody sees them."""
    mechs, earlier = engine.state.mechs[battle], before.mechs[battle]
    dead = earlier["alive"] == 0
    assert (mechs["alive"][dead] == 0).all()
    for name in ("x", "y", "z", "yaw", "heat", "armour", "cooldown"):
        np.testing.assert_array_equal(mechs[name][dead], earlier[name][dead])
    gone = mechs["alive"] == 0
    assert (mechs["contacts"][gone] == NO_MECH).all()
    assert not engine.out.observations[battle, gone].any()
    assert (engine.state.visible[battle, gone] == UNSEEN).all()
    assert (engine.state.visible[battle][:, gone] == UNSEEN).all()
    assert not set(shooters(engine, battle)) & set(np.flatnonzero(dead))


def check_the_shut_down(engine, before, battle):
    """Who was shut down for the whole decision did nothing; who is shut down sees nothing."""
    mechs, earlier = engine.state.mechs[battle], before.mechs[battle]
    inert = (mechs["shutdown_ticks"] == engine.config.decision_repeat) & (mechs["alive"] == 1)
    for name in ("x", "y", "yaw"):
        np.testing.assert_array_equal(mechs[name][inert], earlier[name][inert])
    assert not set(shooters(engine, battle)) & set(np.flatnonzero(inert))
    blind = mechs["shutdown"] == 1
    assert (engine.state.visible[battle, blind] == UNSEEN).all()
    assert (mechs["contacts"][blind] == NO_MECH).all()


def shooters(engine, battle):
    events = engine.state.events[battle][: engine.state.battles["num_events"][battle]]
    return events["actor"][events["kind"] == SHOT].tolist()
