"""MAgent2's battle through PettingZoo (``pettingzoo``) or through its own arrays (``arrays``): MAP_SIZE API."""

import sys
import time
from typing import Any

from turns import Play, floats_of, one_core, parallel_play, serve

one_core()
import numpy as np  # noqa: E402
from magent2.environments import battle_v4  # noqa: E402

ACTIONS = 21
MAX_CYCLES = 1000


def arrays_play(env: Any) -> Play:
    """Turns of the grid world itself: actions in, step, observations, rewards and who lives out, as arrays a team."""
    world, teams = env.env, env.handles
    generator = np.random.default_rng(0)
    since = MAX_CYCLES

    def play(seconds: float) -> tuple[float, int, int, int]:
        nonlocal since
        busy, steps, agent_steps = 0.0, 0, 0
        while not steps or busy < seconds:
            counts = [world.get_num(team) for team in teams]
            if since >= MAX_CYCLES or min(counts) == 0:
                env.reset(seed=steps)
                since, counts = 0, [world.get_num(team) for team in teams]
            actions = [generator.integers(ACTIONS, size=count, dtype=np.int32) for count in counts]
            start = time.perf_counter()
            for team, chosen in zip(teams, actions, strict=True):
                world.set_action(team, chosen)
            world.step()
            for team in teams:
                world.get_observation(team)
                world.get_reward(team)
                world.get_alive(team)
            world.clear_dead()
            busy += time.perf_counter() - start
            agent_steps += sum(counts)
            steps, since = steps + 1, since + 1
        return busy, steps, agent_steps, agent_steps

    return play


map_size, api = int(sys.argv[1]), sys.argv[2]
battle = battle_v4.parallel_env(map_size=map_size, max_cycles=MAX_CYCLES)
if api == "arrays":
    world, teams = battle.unwrapped.env, battle.unwrapped.handles
    # views, and the features beside them, which PettingZoo's environment leaves out
    sizes = [np.prod(world.get_view_space(team)) + np.prod(world.get_feature_space(team)) for team in teams]
    serve(arrays_play(battle.unwrapped), float(np.mean(sizes)))
else:
    serve(parallel_play(battle, ACTIONS), floats_of(battle))
