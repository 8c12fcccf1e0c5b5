"""Invariants over random battles and configurations; in half of the battles all mechs start close together."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from echelon_env.config.battle import BattleConfig
from echelon_env.engine.core import BattleEngine
from echelon_env.engine.state import (
    DEATH,
    FALL,
    HAZARD,
    HIT,
    INTERCEPTION,
    MECH,
    NO_MECH,
    PAINT,
    PROJECTILE,
    RISE,
    SHOT,
    SHUTDOWN,
    SPLASH,
    STATISTICS,
    UNSEEN,
)
from echelon_env.layout.observations import STREAMS, Self, feature_names, observation_bounds
from oracles.configs import odd_config, small_config
from oracles.movement import mech_overlaps, solid_overlaps
from oracles.situations import (
    brawling_actions,
    columns_of,
    count_bits,
    gather,
    random_actions,
    rough_voxels,
    set_voxels,
)
from oracles.stirring import kill_some, shoot_around, stir
from oracles.world import blocks_of, load

BATTLES = 2
DECISIONS = 25
PHASES = (Phase.explicit, Phase.generate)  # shrinking a seed is useless
CONFIGS = {
    "game": small_config(max_steps=20),
    "odd": odd_config(max_steps=1000, zone={"score_to_win": 3.0}),
    "clock": small_config(max_steps=20, time_limit="terminate", observability="full"),
}
LOW, HIGH = observation_bounds()
NAMES = feature_names()


def floats(dtype):
    return [name for name in dtype.names or () if dtype[name].base.kind == "f"]


class Moment(NamedTuple):
    """Copies of the arrays that a step changes."""

    mechs: Any
    teams: Any
    battles: Any
    projectiles: Any
    clouds: Any
    paint: Any
    sightings: Any
    statistics: Any
    shots: Any
    hits: Any
    voxels: Any
    voxel_damage: Any
    over: Any


def moment(engine):
    copies = (getattr(engine.state, name).copy() for name in Moment._fields[:-1])
    return Moment(*copies, engine.battle_over.copy())


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
            "fall_duration": float(rng.uniform(0, 2)),
            "risen_stability": float(rng.uniform(1, 50)),
            "least_recovery": float(rng.uniform(0, 1)),
        },
        combat={
            "friendly_fire": bool(rng.random() < 0.5),
            "legs_share": float(rng.uniform(0, 1)),
            "wreck_height": float(rng.uniform(0, 1)),
            "wreck_duration": float(rng.uniform(0, 1)),
            "anti_missile_probability": float(rng.uniform(0, 1)),
        },
        sensors={"intel_memory": float(rng.choice([0.0, rng.uniform(0, 3)]))},
        rewards={
            "team_spirit": float(rng.choice([0.0, 1.0, rng.uniform(0, 1)])),
            "contested_kill": float(rng.uniform(0, 3)),
            "contested_death": float(rng.uniform(0, 3)),
        },
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
@pytest.mark.parametrize("name", CONFIGS)
@settings(max_examples=12, phases=PHASES)
@given(seed=st.integers(0, 2**64 - 1))
def test_invariants(name, seed):
    check_battles(CONFIGS[name], seed)


@pytest.mark.long
@settings(max_examples=30, phases=PHASES)
@given(seed=st.integers(0, 2**64 - 1))
def test_invariants_of_any_configuration(seed):
    check_battles(random_config(seed), seed)


def check_battles(config, seed):
    engine = BattleEngine(config, BATTLES)
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
                continue
            check_places(engine, battle)
            check_bodies(engine, before, battle)
            check_ranges(engine, before, battle)
            check_terrain(engine, battle)
            check_books(engine, before, battle)
            check_the_dead(engine, before, battle)
            check_the_inert(engine, before, battle)


def check_numbers(engine):
    state = engine.state
    for array, dtype in ((state.mechs, MECH), (state.projectiles, PROJECTILE), (state.statistics, STATISTICS)):
        for name in floats(dtype):
            assert np.isfinite(array[name]).all(), name
    for array in (state.teams, state.battles):
        for name in array.dtype.names:
            assert np.isfinite(array[name].astype(float)).all(), name
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
    assert not (terminated | truncated)[before.over].any()
    ended = engine.battle_over & ~before.over
    takes_part = (before.mechs["alive"] == 1) | (engine.config.dead_agents == "persist")
    np.testing.assert_array_equal((terminated | truncated)[ended], takes_part[ended])


PER_DECISION = (
    *("num_events", "bad_actions", "died", "shutdown_ticks", "damage_dealt", "friendly_damage", "kills", "assists"),
    "loss",
)


def check_standstill(engine, before, battle):
    """Only the counters per decision change: they are zero."""
    after = moment(engine)
    for name in ("mechs", "teams", "battles", "projectiles", "clouds", "paint", "sightings"):
        now, then = getattr(after, name)[battle], getattr(before, name)[battle]
        for field in now.dtype.names:
            if field in PER_DECISION:
                assert not now[field].any(), field
            else:
                np.testing.assert_array_equal(now[field], then[field], err_msg=field)
    for name in ("statistics", "shots", "hits", "voxels", "voxel_damage"):
        np.testing.assert_array_equal(getattr(after, name)[battle], getattr(before, name)[battle], err_msg=name)
    assert not engine.out.rewards[battle].any()


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


def of_classes(engine, battle, name):
    """A field of each mech's class."""
    kinds = engine.config.catalog.mech_classes
    return np.array([getattr(kinds[index], name) for index in engine.state.mechs["mech_class"][battle]])


def check_bodies(engine, before, battle):
    mechs, config = engine.state.mechs[battle], engine.config
    for name in ("armour", "legs"):
        assert (mechs[name] <= before.mechs[name][battle]).all()
        assert ((mechs[name] >= 0) & (mechs[name] <= of_classes(engine, battle, name))).all()
    np.testing.assert_array_equal(mechs["armour"] > 0, mechs["alive"] == 1)
    assert (mechs["heat"] >= 0).all()
    assert (mechs["heat"] <= config.physics.max_heat * of_classes(engine, battle, "heat_capacity") * (1 + 1e-12)).all()
    top_speed = of_classes(engine, battle, "top_speed")
    moved = mechs["alive"] == 1
    assert (np.hypot(mechs["vx"], mechs["vy"])[moved] <= top_speed[moved] * (1 + 1e-9)).all()
    for team in range(2):
        own = mechs["team"] == team
        factor = max(1.0, config.rewards.contested_kill)
        assert mechs["kills"][own].sum() <= factor * mechs["died"][~own].sum() + 1e-9
        assert engine.state.teams["mechs_alive"][battle, team] == mechs["alive"][own].sum()


def check_ranges(engine, before, battle):
    """Timers, charges and stability."""
    mechs, earlier, config = engine.state.mechs[battle], before.mechs[battle], engine.config
    living = mechs["alive"] == 1
    weapons = [mech.weapons for mech in load(engine.state, battle, config).mechs]
    longest = [[0 if weapon is None else config.ticks(weapon.cooldown) for weapon in row] for row in weapons]
    assert ((mechs["cooldown"] >= 0) & (mechs["cooldown"] <= np.maximum(longest, earlier["cooldown"]))).all()
    assert ((mechs["charges"] >= 0) & (mechs["charges"] <= earlier["charges"])).all()
    limits = {
        "stability": config.physics.max_stability,
        "fallen": config.ticks(config.physics.fall_duration),
        "suppressed": max(config.ticks(weapon.suppression) for weapon in config.catalog.weapons),
        "anti_missile_cooldown": config.ticks(config.combat.anti_missile_cooldown),
        "wreck_ticks": config.ticks(config.combat.wreck_duration),
    }
    for name, limit in limits.items():
        assert (mechs[name] >= 0).all(), name
        assert (mechs[name] <= np.maximum(limit, earlier[name])).all(), name
    known = engine.state.sightings[battle][engine.state.sightings["known"][battle] == 1]
    assert ((known["age"] >= 0) & (known["age"] <= config.ticks(config.sensors.intel_memory))).all()
    fallen = living & (mechs["fallen"] > 0)
    assert (mechs["stability"][fallen] == 0).all()
    assert (mechs["stability"][living & ~fallen] > 0).all()
    assert (engine.state.paint["ticks"][battle] >= 0).all()
    clouds = engine.state.clouds[battle][: engine.state.battles["num_clouds"][battle]]
    assert ((clouds["ticks"] > 0) & (clouds["radius"] > 0)).all()


def check_terrain(engine, battle):
    """Columns match the voxels, and blocks the columns; no voxel without hit points is left."""
    state, materials = engine.state, engine.config.catalog.materials
    columns = columns_of(state.voxels[battle], materials)
    for name in ("opaque", "solid", "hazard"):
        np.testing.assert_array_equal(state.columns[name][battle], columns[name], err_msg=name)
    np.testing.assert_array_equal(state.blocks[battle], blocks_of(columns))
    assert state.battles["num_hazards"][battle] == count_bits(columns["hazard"])
    hit_points = np.array([material.hit_points for material in materials])[state.voxels[battle]]
    assert (state.voxel_damage[battle] <= np.maximum(hit_points - 1, 0)).all()


def check_books(engine, before, battle):
    """The sums over a decision's events equal the changes of the statistics."""
    state, events = engine.state, engine.events(battle)
    mechs = state.mechs[battle]
    grown = {
        name: state.statistics[name][battle].astype(float) - before.statistics[name][battle]
        for name in STATISTICS.names
        if not name.startswith("gap_")
    }
    expected = {name: np.zeros(engine.num_mechs) for name in grown if name not in ("kills", "assists")}
    shots, hits = np.zeros_like(state.shots[battle]), np.zeros_like(state.hits[battle])
    counts = {FALL: "falls", SHUTDOWN: "shutdowns", DEATH: "deaths", PAINT: "paints", INTERCEPTION: "interceptions"}
    for event in events:
        kind, actor, target = int(event["kind"]), int(event["actor"]), int(event["target"])
        if kind in counts:
            expected[counts[kind]][actor] += 1
        elif kind == SHOT:
            shots[actor, event["weapon"]] += 1
        elif kind in (HIT, SPLASH, HAZARD):
            hits[actor, event["weapon"]] += kind == HIT
            expected["damage_taken"][target] += event["amount"]
            if kind != HAZARD:
                friend = mechs["team"][actor] == mechs["team"][target]
                expected["friendly_damage" if friend else "damage_dealt"][actor] += event["amount"]
    expected["bad_actions"] += mechs["bad_actions"]
    for name, wanted in expected.items():
        np.testing.assert_allclose(grown[name], wanted, rtol=0, atol=1e-9, err_msg=name)
    factor = engine.config.rewards.contested_kill
    for name in ("kills", "assists"):  # some or all of them in a contested zone
        assert (mechs[name] >= min(1.0, factor) * grown[name] - 1e-9).all(), name
        assert (mechs[name] <= max(1.0, factor) * grown[name] + 1e-9).all(), name
    loss = np.isclose(mechs["loss"], 1.0) | np.isclose(mechs["loss"], engine.config.rewards.contested_death)
    np.testing.assert_array_equal(np.where(mechs["died"], loss, mechs["loss"] == 0), True)
    np.testing.assert_allclose(grown["damage_taken"], before.mechs["armour"][battle] - mechs["armour"], atol=1e-9)
    np.testing.assert_array_equal(state.shots[battle] - before.shots[battle], shots)
    np.testing.assert_array_equal(state.hits[battle] - before.hits[battle], hits)
    assert (grown["kills"] <= grown["deaths"].sum() + 1e-9).all()
    np.testing.assert_array_equal(grown["deaths"], mechs["died"])


def check_the_dead(engine, before, battle):
    """Dead mechs neither move nor act nor see nor return, and no mech sees them."""
    mechs, earlier = engine.state.mechs[battle], before.mechs[battle]
    dead = earlier["alive"] == 0
    assert (mechs["alive"][dead] == 0).all()
    for name in ("x", "y", "z", "yaw", "heat", "armour", "legs", "stability", "cooldown", "charges", "fallen"):
        np.testing.assert_array_equal(mechs[name][dead], earlier[name][dead])
    gone = mechs["alive"] == 0
    assert (mechs["contacts"][gone] == NO_MECH).all() and (mechs["intel"][gone] == NO_MECH).all()
    objective, observed = STREAMS["objective"].part, engine.observations[battle, gone]
    assert observed[:, objective].any(axis=1).all()
    assert not np.delete(observed, np.r_[objective], axis=1).any()
    assert not engine.state.sightings["known"][battle][:, gone].any()
    assert (engine.state.visible[battle, gone] == UNSEEN).all()
    assert (engine.state.visible[battle][:, gone] == UNSEEN).all()
    events = engine.events(battle)
    acts = events["actor"][np.isin(events["kind"], (SHOT, PAINT, INTERCEPTION, FALL, RISE, SHUTDOWN, DEATH))]
    assert not set(acts.tolist()) & set(np.flatnonzero(dead).tolist())
    suffers = events["target"][np.isin(events["kind"], (HIT, SPLASH, HAZARD, PAINT))]
    assert not set(suffers.tolist()) & set(np.flatnonzero(dead).tolist())


def check_the_inert(engine, before, battle):
    """A mech that was shut down or fallen for the whole decision did nothing; a shut-down mech sees nothing."""
    mechs, earlier = engine.state.mechs[battle], before.mechs[battle]
    events = engine.events(battle)
    rose = np.isin(np.arange(engine.num_mechs), events["actor"][events["kind"] == RISE])
    shut = mechs["shutdown_ticks"] == engine.config.decision_repeat
    lay = (earlier["fallen"] > 0) & (mechs["fallen"] > 0) & ~rose
    inert = (shut | lay) & (mechs["alive"] == 1)
    for name in ("x", "y", "yaw"):
        np.testing.assert_array_equal(mechs[name][inert], earlier[name][inert])
    assert not set(events["actor"][events["kind"] == SHOT].tolist()) & set(np.flatnonzero(inert).tolist())
    blind = mechs["shutdown"] == 1
    assert (engine.state.visible[battle, blind] == UNSEEN).all()
    assert (mechs["contacts"][blind] == NO_MECH).all()
    assert (mechs["sounds"][blind] == 0).all()
    assert (mechs["quality"][blind & (mechs["alive"] == 1)] == engine.config.sensors.min_quality).all()
    own = engine.observations[battle][:, STREAMS["self"].part]
    hidden = [Self.ECM, Self.ECCM, Self.VELOCITY_FORWARD, Self.VELOCITY_LEFT, Self.VELOCITY_UP]
    assert not own[blind][:, hidden].any()
