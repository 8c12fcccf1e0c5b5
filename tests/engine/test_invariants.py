"""Invariants over random battles and configurations; in half of the battles all mechs start close together."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from echelon_env.config.battle import BattleConfig
from echelon_env.engine.core import BattleEngine
from echelon_env.layout.observations import feature_names, observation_bounds
from oracles.configs import odd_config, small_config
from oracles.movement import mech_overlaps, solid_overlaps
from oracles.situations import (
    brawling_actions,
    gather,
    random_actions,
    rough_voxels,
    set_voxels,
)
from oracles.stirring import kill_some, shoot_around, stir
from oracles.world import blocks_of, columns_of, count_bits, load

BATTLES = 2
DECISIONS = 25
PHASES = (Phase.explicit, Phase.generate)  # shrinking a seed is useless
LOW, HIGH = observation_bounds()
NAMES = feature_names()


def random_config(seed: int) -> BattleConfig:
    """A configuration with random rosters, switches and numbers, of either catalogue."""
    rng = np.random.default_rng(seed)
    make = odd_config if rng.random() < 0.5 else small_config
    names = [kind.name for kind in make().catalog.mech_classes]
    return make(
        blue=tuple(rng.choice(names, rng.integers(1, 8)).tolist()),
        red=tuple(rng.choice(names, rng.integers(1, 8)).tolist()),
        decision_repeat=int(rng.integers(1, 8)),
        dt=float(rng.choice([0.02, 0.05])),
        max_steps=int(rng.integers(5, 40)),
        time_limit=str(rng.choice(["truncate", "terminate"])),
        observability=str(rng.choice(["partial", "full"])),
        dead_agents=str(rng.choice(["terminate", "persist"])),
        physics={
            "gravity": float(rng.uniform(0, 25)),
            "max_heat": float(rng.uniform(1.01, 2)),
            "jet_boost": float(rng.uniform(0, 0.4)),
        },
        combat={"friendly_fire": bool(rng.random() < 0.5), "wreck_duration": float(rng.uniform(0, 1))},
        sensors={"intel_memory": float(rng.choice([0.0, rng.uniform(0, 3)]))},
        rewards={"team_spirit": float(rng.choice([0.0, 1.0, rng.uniform(0, 1)]))},
    )


def begin(engine, seed, rng):
    """Reset; the last battle continues from the middle of a fight on rough terrain, in close contact."""
    engine.reset([seed, seed ^ 1])
    battle, config, state = BATTLES - 1, engine.config, engine.state
    voxels = rough_voxels(rng, config.terrain.size, config.terrain.height)
    set_voxels(state, battle, voxels, config.catalog.materials)
    gather(state, battle, config, rng, arena=14.0)
    stir(state, battle, config, rng)
    kill_some(state, battle, config, rng, 1)
    shoot_around(state, battle, config, rng, 6)


@pytest.mark.long
@settings(max_examples=30, phases=PHASES)
@given(seed=st.integers(0, 2**64 - 1))
def test_invariants(seed):
    check_battles(random_config(seed), seed)


def check_battles(config, seed):
    engine = BattleEngine(config, BATTLES)
    rng = np.random.default_rng(seed)
    begin(engine, seed, rng)
    for _ in range(DECISIONS):
        before = engine.snapshot() | {"over": engine.battle_over}
        worlds = [load(engine.state, battle, engine.config) for battle in range(BATTLES)]
        draw = random_actions(rng, engine.num_mechs)
        engine.step(np.stack([brawling_actions(world, rng) if rng.random() < 0.7 else draw for world in worlds]))
        check_numbers(engine)
        check_rewards(engine)
        check_flags(engine, before)
        for battle in range(BATTLES):
            if before["over"][battle]:
                check_standstill(engine, before, battle)
                continue
            check_places(engine, battle)
            check_bodies(engine, before, battle)
            check_terrain(engine, battle)


def check_numbers(engine):
    state = engine.state
    for name, array in engine.snapshot().items():
        for field in array.dtype.names or ():
            assert np.isfinite(array[field]).all(), (name, field)
    # The last battle starts with projectiles and clouds that no mount has fired, so it may run out of room.
    assert (state.battles["lost_events"][:-1] == 0).all()
    assert (state.pending == 0).all()
    observations = engine.observations
    assert np.isfinite(observations).all()
    outside = np.argwhere((observations < LOW) | (observations > HIGH))
    assert not len(outside), [(NAMES[index[-1]], float(observations[tuple(index)])) for index in outside[:10]]
    low, high = engine.global_state_bounds()
    for team in (0, 1):
        vectors = engine.global_state(team)
        assert vectors.dtype == low.dtype == high.dtype == np.float32
        assert vectors.shape[1:] == low.shape == high.shape
        assert np.isfinite(vectors).all()
        assert ((vectors >= low) & (vectors <= high)).all()


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
    assert not (terminated | truncated)[before["over"]].any()
    ended = engine.battle_over & ~before["over"]
    takes_part = (before["mechs"]["alive"] == 1) | (engine.config.dead_agents == "persist")
    np.testing.assert_array_equal((terminated | truncated)[ended], takes_part[ended])


PER_DECISION = (
    *("num_events", "bad_actions", "died", "shutdown_ticks", "damage_dealt", "friendly_damage", "kills", "assists"),
    "loss",
)


def check_standstill(engine, before, battle):
    """Only the counters per decision change: they are zero."""
    for name, array in engine.snapshot().items():
        now, then = array[battle], before[name][battle]
        if name in ("rewards", "components", "terminated", "truncated"):
            assert not now.any(), name
        elif now.dtype.names is None:
            np.testing.assert_array_equal(now, then, err_msg=name)
        for field in now.dtype.names or () if name != "events" else ():
            if field in PER_DECISION and name != "statistics":
                assert not now[field].any(), field
            else:
                np.testing.assert_array_equal(now[field], then[field], err_msg=field)


def check_places(engine, battle):
    """No mech is inside terrain or another mech, below the ground or off the map."""
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
        assert shot.reach > 0


def check_bodies(engine, before, battle):
    """Hit points never grow, heat stays within its limit, and the living are counted."""
    mechs, config = engine.state.mechs[battle], engine.config
    for name in ("armour", "legs", "charges"):
        assert ((mechs[name] >= 0) & (mechs[name] <= before["mechs"][name][battle])).all()
    np.testing.assert_array_equal(mechs["armour"] > 0, mechs["alive"] == 1)
    capacity = np.array([kind.heat_capacity for kind in config.catalog.mech_classes])[mechs["mech_class"]]
    assert ((mechs["heat"] >= 0) & (mechs["heat"] <= config.physics.max_heat * capacity * (1 + 1e-12))).all()
    for name in ("stability", "fallen", "suppressed", "cooldown", "anti_missile_cooldown", "wreck_ticks"):
        assert (mechs[name] >= 0).all(), name
    for team in range(2):
        assert engine.state.teams["mechs_alive"][battle, team] == mechs["alive"][mechs["team"] == team].sum()


def check_terrain(engine, battle):
    """Columns match the voxels, and blocks the columns; no voxel without hit points is left."""
    state, materials = engine.state, engine.config.catalog.materials
    columns = columns_of(state.voxels[battle], materials)
    for name in ("opaque", "solid", "hazard"):
        np.testing.assert_array_equal(getattr(state, name)[battle], columns[name], err_msg=name)
    np.testing.assert_array_equal(state.blocks[battle], blocks_of(columns))
    assert state.battles["num_hazards"][battle] == count_bits(columns["hazard"])
    hit_points = np.array([material.hit_points for material in materials])[state.voxels[battle]]
    assert (state.voxel_damage[battle] <= np.maximum(hit_points - 1, 0)).all()
