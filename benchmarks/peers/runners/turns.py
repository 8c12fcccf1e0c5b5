"""How a peer takes its turns: one JSON line on standard output for every number of seconds on standard input.

Runs on any Python with nothing installed: the peers' environments have no Echelon, and Echelon's has none of them.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

Play = Callable[[float], tuple[float, int, int, int]]


def one_core() -> None:
    """Keep this process, and the threads that its libraries start, on one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def serve(play: Play, floats: float) -> None:
    """Answer turns until standard input ends; the first answer is `floats`, the numbers of an agent's observation.

    ``play(seconds)`` steps for about that long and returns the seconds that its steps took, environment steps, agent
    steps as its authors count them, and those of live agents.
    """
    play(0.0)
    print(json.dumps({"floats": floats}), flush=True)
    for line in sys.stdin:
        seconds, steps, agent_steps, live_steps = play(float(line))
        answer = {"seconds": seconds, "steps": steps, "agent_steps": agent_steps, "live_steps": live_steps}
        print(json.dumps(answer), flush=True)


def floats_of(env: Any) -> float:
    """Numbers in an agent's observation of a PettingZoo parallel environment, on average."""
    import numpy as np

    sizes = [np.prod(env.observation_space(agent).shape) for agent in env.possible_agents]
    return float(np.mean(sizes))


def parallel_play(env: Any, actions: int, seed: int = 0) -> Play:
    """Turns of a PettingZoo parallel environment with discrete random actions; resets are off the clock."""
    import numpy as np

    generator = np.random.default_rng(seed)
    env.reset(seed=seed)

    def play(seconds: float) -> tuple[float, int, int, int]:
        busy, steps, agent_steps = 0.0, 0, 0
        while not steps or busy < seconds:
            if not env.agents:
                env.reset()
            chosen = dict(zip(env.agents, generator.integers(actions, size=len(env.agents)).tolist(), strict=True))
            agent_steps += len(chosen)
            start = time.perf_counter()
            env.step(chosen)
            busy += time.perf_counter() - start
            steps += 1
        return busy, steps, agent_steps, agent_steps

    return play
