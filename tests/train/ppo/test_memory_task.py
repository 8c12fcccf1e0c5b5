"""A task that needs memory: the recurrent policy solves it, a policy whose state is reset does not."""

import pytest
from benchmarks.memory_task import run


@pytest.mark.long
def test_only_a_policy_with_memory_solves_the_task():
    assert run(seed=3, forget=False)["reward"] > 0.9
    # same network and samples; the mean of 200 random rewards of +-1 has a standard error of 0.07
    assert abs(run(seed=3, forget=True)["reward"]) < 0.3
