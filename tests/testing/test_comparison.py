import numpy as np
import pytest

from echelon_env.testing.comparison import find_arrays, find_difference, find_overlaps


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        (1.0, 1.0, None),
        (np.nan, np.nan, None),
        (np.array([1, np.nan]), np.array([1, np.nan]), None),
        ({"a": [1, (2, "x")]}, {"a": [1, (2, "x")]}, None),
        (np.array([None, {"a": 1}]), np.array([None, {"a": 1}]), None),
        (1, 1.0, ("x", "int 1", "float 1.0")),
        (np.float32(1), 1.0, ("x", "float32 np.float32(1.0)", "float 1.0")),
        ([1], (1,), ("x", "list", "tuple")),
        ({"a": 1}, {"b": 1}, ("x", "the keys ['a']", "['b']")),
        ({"a": {"b": [0, 1]}}, {"a": {"b": [0, 2]}}, ("x['a']['b'][1]", "1", "2")),
        ([1], [1, 2], ("x", "length 1", "length 2")),
        ("red", "blue", ("x", "'red'", "'blue'")),
        (np.zeros(2), np.zeros(3), ("x", "shape (2,)", "shape (3,)")),
        (np.zeros(2), np.zeros(2, np.float32), ("x", "dtype float64", "dtype float32")),
        (np.zeros((2, 2)), np.eye(2), ("x[0, 0]", "0.0", "1.0 (2 of 4 entries differ)")),
        (np.array([None, 1]), np.array([None, 2]), ("x[1]", "1", "2")),
        (None, np.zeros(1), ("x", "NoneType None", "ndarray array([0.])")),
    ],
)
def test_the_first_difference_is_named(first, second, found):
    assert find_difference(first, second, path="x") == found


def test_tolerance_forgives_types_and_little_differences():
    assert find_difference([1, np.float32(0.5)], (1.0, 0.5), tolerance=0.0) is None
    assert find_difference(np.array([100.0]), np.array([100.5]), tolerance=0.01) is None
    assert find_difference(np.array([100.0]), np.array([102.0]), tolerance=0.01)
    assert find_difference(np.array([1.0]), np.array([1.0 + 1e-12]), tolerance=0.0)


def test_ignored_keys_may_differ_at_any_depth():
    first, second = {"a": {"ms": 1, "b": 2}}, {"a": {"b": 2}, "ms": 3}
    assert find_difference(first, second, ignored=["ms"]) is None
    assert find_difference(first, second)


def test_arrays_are_found_at_any_depth():
    inner = np.zeros(1)
    value = {"a": [inner, (1, inner)], "b": np.array([None, {"c": inner}], object)}
    assert [path for path, _ in find_arrays(value, "x")] == ["x['a'][0]", "x['a'][1][1]", "x['b'][1]['c']"]


def test_overlaps_are_of_shared_memory_only():
    buffer = np.zeros((4, 6))
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    arrays = [buffer[0], buffer[:, 2], np.zeros(6), buffer[0, 3:], buffer[1:, 1], frozen, frozen[:], buffer[:0]]
    assert sorted(find_overlaps(arrays)) == [(0, 1), (0, 3)]
