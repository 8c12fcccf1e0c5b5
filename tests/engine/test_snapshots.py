"""The saved state of an engine. The tests of the training environment continue battles from it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echelon_env import BattleEngine, ControlledBattles, MapPool, make_config
from echelon_env.engine.snapshots import engine_arrays, restore_engine
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.storage.arrays import as_bytes
from oracles.world import columns_of, set_columns

CONFIG = make_config("skirmish", terrain={"size": 56}, max_steps=30)


def fought(num_threads=1, **arguments):
    engine = BattleEngine(CONFIG, 3, num_threads, **arguments)
    engine.reset([4, 5, 2**64 - 1])
    noise = np.random.default_rng(2)
    for _ in range(12):
        engine.step(noise.uniform(-1, 1, (3, 10, ACTION_DIM)).astype(np.float32))
    return engine


@pytest.mark.parametrize("arguments", [{}, {"maps": 2}])
def test_a_restored_engine_has_the_same_bytes(arguments):
    engine = fought(**arguments)
    iz, iy, ix = np.argwhere(engine.state.voxels[1] > 0)[1000]
    engine.state.voxels[1, iz, iy, ix] = 0  # as if it had been destroyed
    set_columns(engine.state, 1, columns_of(engine.state.voxels[1]))
    restored = BattleEngine(CONFIG, 3, **arguments)
    packed = ("opaque", "solid", "hazard", "blocks")
    for name in packed:
        getattr(restored.state, name).view(np.uint32)[:] = 2**32 - 1
    restore_engine(restored, engine_arrays(engine))
    before, after = ({**each.snapshot(), **{k: getattr(each.state, k) for k in packed}} for each in (engine, restored))
    assert [name for name in before if before[name].tobytes() != after[name].tobytes()] == []
    assert [restored.terrain(b).content_hash for b in range(3)] == [engine.terrain(b).content_hash for b in range(3)]


VALUES = {
    "mechs.contacts": ("mechs", "contacts", 10),
    "mechs.target": ("mechs", "target", -2),
    "mechs.mech_class": ("mechs", "mech_class", 100),
    "mechs.x": ("mechs", "x", 1e9),
    "mechs.x: expected mechs inside the map": ("mechs", "x", 0.0),  # half of its box is outside
    "mechs.y: expected mechs inside the map": ("mechs", "y", float(CONFIG.terrain.size)),
    "mechs.z": ("mechs", "z", 1e300),
    "mechs.facing_x": ("mechs", "facing_x", 1.7e308),
    "mechs.heat": ("mechs", "heat", np.nan),
    "projectiles.weapon": ("projectiles", "weapon", 99),
    "battles.num_projectiles": ("battles", "num_projectiles", 10**6),
    "clouds.team": ("clouds", "team", 2),
    "teams.quarter_turns": ("teams", "quarter_turns", 4),
}


@pytest.mark.parametrize("case", VALUES)
def test_values_that_no_battle_can_have_are_refused(fighting, case):
    """With an index outside an array, compiled code could write anywhere."""
    name, field, value = VALUES[case]
    engine, before = fighting
    arrays, wrong = engine_arrays(engine), engine.snapshot()
    wrong[name][field][...] = value
    with pytest.raises(ValueError, match=case):
        engine.restore(wrong)
    with pytest.raises(ValueError, match=case):
        restore_engine(engine, arrays | {name: as_bytes(wrong[name])})
    assert all(array.tobytes() == before[key].tobytes() for key, array in engine.snapshot().items())


@pytest.fixture(scope="module")
def fighting():
    engine = fought()
    return engine, engine.snapshot()


def numbers_of(dtype):
    """Strategy for numbers of a dtype, most of them extreme."""
    if dtype.kind == "b":
        return st.booleans()
    if dtype.kind == "f":
        return st.floats(width=8 * dtype.itemsize) | st.sampled_from([-1.0, 1e6, 1e18])
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    return st.sampled_from([low, high, 1, 7, 100]) | st.integers(low, high)


@given(st.data())
@settings(max_examples=60)
def test_a_snapshot_with_any_change_is_refused_or_can_be_played(fighting, data):
    """Most changes are no harm; what is accepted must not let compiled code leave its arrays."""
    engine, sound = fighting
    changed = {name: array.copy() for name, array in sound.items()}
    name = data.draw(st.sampled_from([name for name, array in changed.items() if array.size and name != "started"]))
    array = changed[name]
    values = array[data.draw(st.sampled_from(array.dtype.names))] if array.dtype.names else array
    place = data.draw(st.just(...) | st.integers(0, len(values) - 1))
    values[place] = data.draw(numbers_of(values.dtype))
    try:
        engine.restore(changed)
    except ValueError:
        return
    for action in (-1.0, 1.0):
        engine.step(np.full((3, 10, ACTION_DIM), action, np.float32))


def test_a_pilots_battles_continue():
    def make(seed):
        return ControlledBattles(CONFIG, 2, control="pilot", opponent={"novice": 1, "expert": 1}, pilot=1, seed=seed)

    def walk(battles, steps):
        noise = np.random.default_rng(1)
        shape = (steps, 2, battles.num_controlled, ACTION_DIM)
        return [battles.step(actions)[0].tobytes() for actions in noise.uniform(-1, 1, shape).astype(np.float32)]

    battles, again = make(3), make(3)
    battles.reset([1, 2], side=[1, 0])
    walk(battles, 6)
    arrays = battles.state_arrays()
    seen = again.restore_arrays(arrays)
    assert seen.tobytes() == battles.observations.tobytes()
    assert again.rows.tolist() == battles.rows.tolist()
    assert walk(again, 15) == walk(battles, 15)
    other = make(4)
    other.reset([1, 2])
    before = {name: array.tobytes() for name, array in other.state_arrays().items()}
    arrays = {**arrays, "opponent.seed": np.array([4], np.uint64)}  # the seed of its opponent but not of its team-mate
    with pytest.raises(ValueError, match=r"Scripted.*seed: expected 5, got 4"):
        other.restore_arrays(arrays)
    assert {name: array.tobytes() for name, array in other.state_arrays().items()} == before


def test_recalled_maps_count_as_generated_and_must_be_the_same():
    pool = MapPool(CONFIG, [3, 4, 5])
    first = pool[0].content_hash
    other = MapPool(CONFIG, [3, 4, 5])
    other.recall(pool.made)
    assert other.made == pool.made == {3: first}
    assert other.content_hashes == {first}
    with pytest.raises(ValueError, match="seed 9 is none of the pool's 3"):
        other.recall({4: "0" * 64, 9: "0" * 64})
    with pytest.raises(ValueError, match="seed 3: expected a map with the content hash"):
        other.recall({4: "0" * 64, 3: "0" * 64})
    assert other.made == {3: first}
    other.recall({4: "0" * 64})
    with pytest.raises(ValueError, match="recipe of seed 4"):
        _ = other[1]
