import numpy as np
import pytest
import torch
from gymnasium import spaces

from echelon_train.ppo.observations import Staging, allocate, flat, index, store, tensors_of, tree_map

CPU = torch.device("cpu")
VECTOR = spaces.Box(-1.0, 1.0, (2,), np.float64)
BOTH = spaces.Dict({"vector": VECTOR, "kind": spaces.Discrete(4)})


def test_arrays_become_tensors_with_the_buffers_dtypes():
    plain = tensors_of(VECTOR, np.ones((3, 2)))
    assert plain.dtype == torch.float32
    named = tensors_of(BOTH, {"vector": np.ones((3, 2)), "kind": np.array([1, 2, 3], np.int32)})
    assert (named["vector"].dtype, named["kind"].dtype) == (torch.float32, torch.int64)
    assert named["kind"].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("space", "shapes"), [(VECTOR, [(5, 3, 2)]), (BOTH, [(5, 3), (5, 3, 2)])], ids=["plain", "dict"]
)
def test_a_stored_step_can_be_indexed(space, shapes):
    buffer = allocate(space, 5, 3, CPU)
    parts = [buffer] if isinstance(buffer, torch.Tensor) else list(buffer.values())
    assert sorted(tuple(part.shape) for part in parts) == sorted(shapes)
    assert not any(part.any() for part in parts)
    given = tree_map(lambda part: torch.ones(part.shape[1:], dtype=part.dtype), buffer)
    store(buffer, 2, given)
    found, flattened = index(buffer, 2), flat(buffer)
    for name, part in given.items() if isinstance(given, dict) else [(None, given)]:
        assert torch.equal(found if name is None else found[name], part)
        rows = flattened if name is None else flattened[name]
        assert rows.shape[0] == 15
        assert float(rows.float().sum()) == float(rows[6:9].float().sum()) == part.numel()


def test_observations_are_not_copied_on_the_cpu():
    tensor = torch.ones(2)
    assert Staging(CPU).to_device(tensor) is tensor


def test_copies_to_a_device_go_through_memory_that_is_kept():
    staging = Staging(torch.device("meta"))
    given = {"vector": torch.ones(3, 2), "kind": torch.ones(3, dtype=torch.int64)}
    found = staging.to_device(given)
    assert {name: (part.device.type, part.shape, part.dtype) for name, part in found.items()} == {
        name: ("meta", part.shape, part.dtype) for name, part in given.items()
    }
    kept = {name: part.data_ptr() for name, part in staging._pinned.items()}
    for step in range(2, 4):
        staging.to_device({name: step * part for name, part in given.items()})
        assert {name: part.data_ptr() for name, part in staging._pinned.items()} == kept
        assert float(staging._pinned["vector"].sum()) == 6 * step
    staging.to_device(given | {"vector": torch.ones(5, 2)})  # another number of rows
    assert staging._pinned["vector"].shape == (5, 2)
