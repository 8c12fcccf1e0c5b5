"""VMAS's football, 10 v 10, without the scripted side, in PyTorch on one thread: ENVS."""

import os
import sys
import time

from turns import one_core, serve

os.environ["OMP_NUM_THREADS"] = "1"
one_core()
import torch  # noqa: E402
from vmas import make_env  # noqa: E402

torch.set_num_threads(1)
EPISODE = 100
num_envs = int(sys.argv[1])
env = make_env(
    "football", num_envs=num_envs, seed=0, n_blue_agents=10, n_red_agents=10, ai_red_agents=False, ai_blue_agents=False
)
generator = torch.Generator().manual_seed(0)
actions = [[2 * torch.rand((num_envs, 2), generator=generator) - 1 for _ in env.agents] for _ in range(10)]
since = EPISODE
floats = sum(seen.shape[-1] for seen in env.reset()) / len(env.agents)


def play(seconds: float) -> tuple[float, int, int, int]:
    """Steps of all environments; resets are off the clock."""
    global since
    busy, calls = 0.0, 0
    while not calls or busy < seconds:
        if since >= EPISODE:
            env.reset()
            since = 0
        start = time.perf_counter()
        env.step(actions[since % len(actions)])
        busy += time.perf_counter() - start
        calls, since = calls + 1, since + 1
    steps = calls * num_envs
    return busy, steps, steps * len(env.agents), steps * len(env.agents)


serve(play, floats)
