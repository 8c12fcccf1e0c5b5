"""Arrays of observations are written again when no caller has them or a part of them, and not before."""

import numpy as np
import pytest

from echelon_env import BattleEngine
from echelon_env.engine.boundary import MEMORIES
from echelon_env.layout.actions import ACTION_DIM

PARTS = {
    "array": lambda array: array,
    "view": lambda array: array[:1].reshape(-1),
    "view of a view": lambda array: array[:4].reshape(2, 2, -1)[0][1:],
    "bytes": lambda array: array.view(np.uint8).T,
    "memoryview": memoryview,
    "strides": lambda array: np.lib.stride_tricks.as_strided(array, (1,), (8,)),
    "broadcast": lambda array: np.broadcast_to(array, (3, *array.shape)),
    "iterator": lambda array: array.flat,
    "DLPack": np.from_dlpack,
    "nothing": lambda array: None,
}


@pytest.mark.parametrize("part", PARTS)
def test_what_a_caller_keeps_stays_and_memory_is_used_again(part):
    engine = BattleEngine("duel", 4)
    engine.reset(range(4))
    rows, rng = engine.observation_rows, np.random.default_rng(0)
    kept, addresses = [], set()
    for _ in range(30):
        engine.actions[:] = rng.uniform(-1, 1, (4, 2, ACTION_DIM))
        engine.advance()
        rows.given = True
        addresses.add(rows.array.ctypes.data)
        held = PARTS[part](rows.array)
        kept = [*kept[-1:], (held, np.array(held, copy=True))]
        for each, values in kept:
            np.testing.assert_array_equal(np.array(each), values)
    assert len(addresses) <= (1 if part == "nothing" else MEMORIES)


def test_an_allocator_gives_the_memory_and_must_own_it():
    engine, made = BattleEngine("duel", 1), []

    def allocate(shape):
        made.append(np.zeros(shape, np.float32))
        return made[-1]

    engine.observation_rows.use_memory(allocate)
    assert np.shares_memory(engine.reset([0]), made[-1])
    with pytest.raises(RuntimeError, match="whose arrays own their memory"):
        engine.observation_rows.use_memory(lambda shape: np.zeros(shape[0] * shape[1], np.float32).reshape(shape))
