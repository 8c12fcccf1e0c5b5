"""Memory is used again when nothing refers to it, and not before."""

import gc
import weakref

import numpy as np
import pytest

from echelon_env.engine.lent_arrays import SPARE, LentArrays

RECORD = np.dtype([("flags", "?", (3,)), ("value", "f8"), ("code", "i4")])


def records():
    return LentArrays(lambda: np.zeros((4, 5), RECORD))


@pytest.mark.parametrize(
    "part",
    [
        lambda array: array,
        lambda array: array["value"],
        lambda array: array["flags"][1:, 2, ::2],
        lambda array: array[2, 3],
        lambda array: array.view(np.recarray).code,
        lambda array: array.view(np.uint8).reshape(4, -1).T,
        lambda array: memoryview(array["value"]),
        lambda array: np.lib.stride_tricks.as_strided(array["value"], (1,), (8,)),
        lambda array: np.broadcast_to(array["value"], (7, 4, 5)),
        lambda array: array["value"].flat,
    ],
)
def test_a_part_of_an_array_keeps_its_memory(part):
    lent = records()
    memory, array = lent.take()
    kept = part(array)
    del array
    gc.collect()
    others = [lent.take() for _ in range(3)]
    assert memory not in [other for other, _ in others]
    del kept
    gc.collect()
    assert lent.take()[0] is memory


def test_arrays_differ_in_memory_and_have_the_shape_and_type_of_what_is_allocated():
    lent = records()
    memory, first = lent.take()
    _, second = lent.take()
    assert first.shape == second.shape == (4, 5)
    assert first.dtype == RECORD
    assert not np.shares_memory(first, second)
    first["value"] = 7.0
    assert memory.writer(lambda array: array["value"].sum)() == 140.0


def test_a_writer_is_made_once_for_every_memory():
    lent, made = records(), []

    def bind(array):
        made.append(array)
        return array.fill

    for _ in range(5):
        memory, array = lent.take()
        memory.writer(bind)
        del array
    assert len(made) == 1
    assert memory.writer(lambda array: array.sum) is not memory.writer(bind)
    assert len(made) == 2


def test_a_few_memories_are_kept_for_later_arrays():
    lent = records()
    kept = [lent.take() for _ in range(SPARE + 3)]
    memories = {memory for memory, _ in kept}
    assert len(memories) == SPARE + 3
    kept.clear()
    again = {lent.take()[0] for _ in range(SPARE + 3)}
    assert len(again) == 1, "the last one is taken first"
    kept = [lent.take() for _ in range(SPARE + 3)]
    assert len({memory for memory, _ in kept} & memories) == SPARE


def test_an_array_outlives_its_owner():
    lent = records()
    _, array = lent.take()
    array["value"] = 3.0
    owner = weakref.ref(lent)
    del lent, _
    gc.collect()
    assert owner() is None
    assert array["value"].sum() == 60.0
