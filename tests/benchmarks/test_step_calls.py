"""A reader can follow a step: it runs few functions in few files."""

import pytest

from benchmarks import step_calls
from echelon_env.engine.kernels import backend

MOST_CALLS, MOST_FILES = 20, 8


@pytest.mark.skipif(backend().name != "library", reason="other backends have functions of their own")
def test_a_step_runs_few_functions_in_few_files():
    steps = step_calls.steps()
    assert {name.split()[0] for name in steps} == {"parallel", "AEC,", "batch", "vector"}
    for name, step in steps.items():
        calls = step_calls.calls_of(step)
        assert any(function == "BattleEngine.advance" for _, function in calls)
        if not name.startswith("AEC"):
            assert len(calls) <= MOST_CALLS, (name, calls)
            assert len(step_calls.files_of(calls)) <= MOST_FILES, (name, calls)
