"""A task that needs a memory: the recurrent policy solves it, one that forgets does not."""

from benchmarks.memory_task import run


def test_only_what_remembers_solves_it():
    assert run(seed=3, forget=False)["reward"] > 0.9
    # the same network and samples; 200 episodes of +-1 with even chances stray by 0.07
    assert abs(run(seed=3, forget=True)["reward"]) < 0.3
