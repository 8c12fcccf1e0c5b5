import numpy as np
import torch
from gymnasium import spaces

from echelon_train.ppo.observations import Staging, tensors_of

CPU = torch.device("cpu")
VECTOR = spaces.Box(-1.0, 1.0, (2,), np.float64)
BOTH = spaces.Dict({"vector": VECTOR, "kind": spaces.Discrete(4)})


def test_arrays_become_tensors_with_the_buffers_dtypes():
    plain = tensors_of(VECTOR, np.ones((3, 2)))
    assert plain.dtype == torch.float32
    named = tensors_of(BOTH, {"vector": np.ones((3, 2)), "kind": np.array([1, 2, 3], np.int32)})
    assert (named["vector"].dtype, named["kind"].dtype) == (torch.float32, torch.int64)
    assert named["kind"].tolist() == [1, 2, 3]


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
