import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from echelon_env.wrappers import RunningMoments
from echelon_env.wrappers.moments import MAX_BYTES

numbers = st.floats(-1e6, 1e6, width=32)
batches = st.lists(
    st.integers(0, 5).flatmap(
        lambda n: st.tuples(
            arrays(np.float32, (n, 3), elements=numbers), arrays(np.bool_, (n,), elements=st.booleans())
        )
    ),
    max_size=6,
)


def values(moments):
    return moments.mean.tobytes(), moments.var.tobytes(), moments.count


@given(batches)
def test_equal_to_numpy_on_all_unmasked_rows(batches):
    moments = RunningMoments((3,))
    for rows, mask in batches:
        moments.update(np.where(mask[:, None], rows, np.nan), mask)
    rows = np.concatenate([np.zeros((0, 3)), *(rows[mask] for rows, mask in batches)])
    assert moments.count == len(rows)
    np.testing.assert_allclose(moments.mean, rows.mean(axis=0) if len(rows) else np.zeros(3), rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(moments.var, rows.var(axis=0) if len(rows) > 1 else np.ones(3), rtol=1e-9, atol=1e-3)


def test_a_small_variance_around_a_large_mean_is_kept():
    rows = 1e9 + np.random.default_rng(0).normal(size=(100, 7))
    moments = RunningMoments()
    for row in rows:
        moments.update(row)
    assert moments.var == pytest.approx(rows.var(), rel=1e-6)


@pytest.mark.parametrize(
    ("rows", "mask", "message"),
    [
        (np.zeros((2, 4)), None, r"rows: expected shape \(\.\.\., 3\) with a leading axis, got \(2, 4\)"),
        (np.zeros((2, 3)), [True], r"mask: expected booleans of shape \(2,\), got bool of shape \(1,\)"),
        (np.zeros((2, 3)), [1, 0], r"mask: expected booleans of shape \(2,\), got int64"),
        ([[0, 0, 0], [0, np.inf, 0]], [False, True], "rows: expected finite"),
    ],
)
def test_bad_rows_change_nothing(rows, mask, message):
    moments = RunningMoments((3,))
    moments.update(np.eye(3))
    before = values(moments)
    with pytest.raises(ValueError, match=message):
        moments.update(rows, mask)
    assert values(moments) == before


def damaged(**changes):
    fields = {"shape": [3], "count": 2, "mean": [0.0, 1.0, 2.0], "squared_deviations": [0.0, 1.0, 2.0]} | changes
    return json.dumps({"kind": "RunningMoments", "moments": {"": fields}})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Expecting value"),
        (damaged()[:-20], "delimiter|Unterminated|Expecting"),
        ("[1, 2]", "got list"),
        ("[" * 100_000, "at most 50 nested values"),
        (damaged().replace("RunningMoments", "NormalizeRewards"), "got kind 'NormalizeRewards'"),
        (damaged().replace('{"": {', '{"x": {'), r"expected moments of \[''\], got \['x'\]"),
        ('{"kind": "RunningMoments", "moments": {"": 3}}', "expected the keys"),
        (damaged(shape=[4]), r"rows of shape \[3\], got \[4\]"),
        (damaged(mean=[0.0, 1.0]), "mean to be a list of 3 floats"),
        (damaged(mean=[0.0, 1.0, float("nan")]), "finite numbers"),
        (damaged(mean=[0.0, 1.0, 10**400]), "mean to be a list of 3 floats"),
        (damaged(squared_deviations=[0.0, -1.0, 2.0]), "squared_deviations of at least 0"),
        (damaged(count=-1), r"count from 0 to 2\*\*53"),
        (damaged(count=1.5), r"count from 0 to 2\*\*53"),
        (" " * (MAX_BYTES + 1), "larger than"),
        (b"\x93NUMPY\xff", "codec"),
    ],
)
def test_other_files_change_nothing(tmp_path, text, message):
    path = tmp_path / "moments.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    moments = RunningMoments((3,))
    moments.update(np.eye(3))
    before = values(moments)
    with pytest.raises(ValueError, match=message) as error:
        moments.load(path)
    assert str(path) in str(error.value) and "RunningMoments.save()" in str(error.value)
    assert values(moments) == before
