from dataclasses import dataclass, field

import numpy as np
import pytest

from echelon_env.testing import ConformanceError
from echelon_env.testing.comparison import find_difference, find_overlaps, snapshot


@dataclass
class Track:
    name: str
    places: np.ndarray
    ms: float = field(default=0.0, compare=False)


class Incomparable:
    def __eq__(self, other):
        raise RuntimeError("no")

    def __hash__(self):
        return 0

    def __repr__(self):
        return "<incomparable>"


class Table:
    """Compares elementwise, as data frames do."""

    def __init__(self, *entries):
        self.entries = np.array(entries)

    def __eq__(self, other):
        return self.entries == other.entries

    def __hash__(self):
        return 0

    def __repr__(self):
        return f"Table{self.entries.tolist()}"


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        (1.0, 1.0, None),
        (np.nan, np.nan, None),
        (np.array([1, np.nan]), np.array([1, np.nan]), None),
        ({"a": [1, (2, "x")]}, {"a": [1, (2, "x")]}, None),
        (1, 1.0, ("x", "int 1", "float 1.0")),
        (np.float32(1), 1.0, ("x", "float32 np.float32(1.0)", "float 1.0")),
        ([1], (1,), ("x", "list", "tuple")),
        ({"a": 1}, {"b": 1}, ("x", "the keys ['a']", "['b']")),
        ({"a": {"b": [0, 1]}}, {"a": {"b": [0, 2]}}, ("x['a']['b'][1]", "1", "2")),
        ([1], [1, 2], ("x", "length 1", "length 2")),
        (np.zeros(2), np.zeros(3), ("x", "shape (2,)", "shape (3,)")),
        (np.zeros(2), np.zeros(2, np.float32), ("x", "dtype float64", "dtype float32")),
        (np.zeros((2, 2)), np.eye(2), ("x[0, 0]", "0.0", "1.0 (2 of 4 entries differ)")),
        (np.array([None, 1]), np.array([None, 2]), ("x[1]", "1", "2")),
        (Track("a", np.array([1, np.nan]), 1), Track("a", np.array([1, np.nan]), 2), None),
        (Track("a", np.zeros(2)), Track("a", np.eye(2)[0]), ("x.places[0]", "0.0", "1.0 (1 of 2 entries differ)")),
        (Track, Track, None),
        (Table(1, 2), Table(1, 3), ("x", "Table[1, 2]", "Table[1, 3]")),
        (
            Incomparable(),
            Incomparable(),
            ("x", "a value that can be compared", "<incomparable>, RuntimeError: no"),
        ),
        (None, np.zeros(1), ("x", "NoneType None", "ndarray array([0.])")),
    ],
)
def test_the_first_difference_is_named(first, second, found):
    assert find_difference(first, second, path="x") == found


def test_ignored_keys_may_differ_at_any_depth():
    first, second = {"a": {"ms": 1, "b": 2}}, {"a": {"b": 2}, "ms": 3}
    assert find_difference(first, second, ignored=["ms"]) is None
    assert find_difference(first, second)


def test_a_snapshot_copies_all_but_ignored_keys():
    value = {"a": [np.zeros(1)], "b": {"a": np.zeros(1), "c": (i for i in "ab")}}
    copied = snapshot("here", value, ["c"])
    assert find_difference(value, copied) is None
    assert copied["b"]["c"] is value["b"]["c"]
    assert copied["a"][0] is not value["a"][0]
    with pytest.raises(ConformanceError, match=r"^aliasing: here: expected values that can be copied .*generator"):
        snapshot("here", value, ["a"])


def test_overlaps_are_of_shared_memory_only():
    buffer = np.zeros((4, 6))
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    arrays = [buffer[0], buffer[:, 2], np.zeros(6), buffer[0, 3:], buffer[1:, 1], frozen, frozen[:], buffer[:0]]
    assert sorted(find_overlaps(arrays)) == [(0, 1), (0, 3)]
