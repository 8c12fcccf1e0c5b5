import numpy as np
import pytest

from echelon_env.storage.arrays import as_bytes, bytes_kind, check_arrays, from_bytes, named, part_of, without

RECORDS = np.array([[(1, 2.5), (3, 4.5)]] * 3, np.dtype([("a", "i4"), ("b", "f8")]))


@pytest.mark.parametrize("array", [RECORDS, RECORDS[:0], RECORDS[:, ::2], np.arange(5), np.ones((2, 3, 4), np.bool_)])
def test_bytes_are_the_array(array):
    data = as_bytes(array)
    assert (data.shape, data.dtype) == bytes_kind(array, len(array))
    again = from_bytes(data, array)
    assert (again.dtype, again.shape) == (array.dtype, array.shape)
    assert again.tobytes() == array.tobytes()
    assert not np.shares_memory(data, array)
    assert again.flags.writeable


def test_parts_have_prefixed_names():
    whole = named("a", {"x": np.zeros(1), "b.y": np.ones(2)}) | {"ab": np.zeros(3)}
    assert set(whole) == {"a.x", "a.b.y", "ab"}
    assert set(part_of(whole, "a")) == {"x", "b.y"}
    assert set(without(whole, "a", "c")) == {"ab"}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, r"state of it: arrays missing: \['x'\]; unknown: \[\]"),
        ({"x": np.zeros((3, 2)), "z": 1}, r"arrays missing: \[\]; unknown: \['z'\]"),
        ({"x": [[0.0, 0.0]]}, "'x': expected an array, got list"),
        ({"x": np.zeros((3, 3))}, r"'x': expected \(any, 2\) float64, got \(3, 3\) float64"),
        ({"x": np.zeros(2)}, r"'x': expected \(any, 2\) float64, got \(2,\) float64"),
        ({"x": np.zeros((3, 2), np.float32)}, r"'x': expected \(any, 2\) float64, got \(3, 2\) float32"),
        ({"x": np.zeros((3, 2), object)}, r"got \(3, 2\) object"),
    ],
)
def test_other_arrays_are_refused(arrays, message):
    check_arrays("it", {"x": np.zeros((7, 2))}, {"x": ((None, 2), np.float64)})
    with pytest.raises(ValueError, match=message):
        check_arrays("it", arrays, {"x": ((None, 2), np.float64)})
