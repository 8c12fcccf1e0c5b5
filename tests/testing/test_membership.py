import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Sequence, Text, Tuple

from echelon_env.testing.membership import find_mismatch

SPACES = [
    Box(-1, 1, (2, 3), np.float32),
    Box(0, 255, (4,), np.uint8),
    Box(-np.inf, np.inf, (), np.float64),
    Discrete(3, start=-1),
    MultiBinary((2, 2)),
    MultiDiscrete([2, 5], start=[1, -3]),
    Text(4),
    Sequence(Discrete(2)),
    Tuple((Discrete(2), Box(0, 1, (1,)))),
    Dict({"a": MultiBinary(2), "b": Dict({"c": Discrete(2)})}),
]


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_samples_are_members(space):
    space.seed(1)
    for _ in range(20):
        assert find_mismatch(space, space.sample()) is None


@pytest.mark.parametrize(
    ("space", "value", "mismatch"),
    [
        (Box(-1, 1, (2,)), np.float32([0, 2]), ("x[1]", "a finite number from -1.0 to 1.0", "2.0 (1 of 2")),
        (Box(-np.inf, np.inf, (2,)), np.float32([0, np.inf]), ("x[1]", "a finite number from -inf", "inf (1 of 2")),
        (Box(-1, 1, (2,)), [0.0, 0.0], ("x", "an array of shape (2,)", "list [0.0, 0.0]")),
        (Box(-1, 1, (2,)), np.zeros(2), ("x", "shape (2,), float32", "shape (2,), float64")),
        (MultiDiscrete([2, 5], start=[1, -3]), np.array([3, -3]), ("x[0]", "a finite number from 1 to 2", "3 (1 of 2")),
        (Discrete(3), 3, ("x", "a member of Discrete(3)", "3")),
        (Dict(a=Discrete(2)), {}, ("x", "a dict with the keys ['a']", "dict {}")),
        (Dict(a=Dict(b=Discrete(2))), {"a": {"b": 5}}, ("x['a']['b']", "a member of Discrete(2)", "5")),
        (Tuple((Discrete(2),)), [1], ("x", "a tuple with the keys [0]", "list [1]")),
    ],
)
def test_a_mismatch_is_named(space, value, mismatch):
    for found, expected in zip(find_mismatch(space, value, "x"), mismatch, strict=True):
        assert found.startswith(expected)
