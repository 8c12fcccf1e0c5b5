"""JaxMARL's SMAX, 10 v 10, continuous actions, both sides random, jitted: ENVS STEPS (environments, steps a call).

With ``best`` in place of both the numbers are those of CANDIDATES that are fastest in a short trial of each.
"""

import os
import sys
import time
from typing import Any

from turns import Play, one_core, serve

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"
one_core()
import jax  # noqa: E402
from jaxmarl.environments.smax import SMAX  # noqa: E402

EPISODE = 100  # steps, SMAX's own time limit
CANDIDATES = ((4, 100), (16, 25), (64, 25), (256, 25))
env = SMAX(num_allies=10, num_enemies=10, action_type="continuous", use_self_play_reward=True)
floats = env.observation_space(env.agents[0]).shape[0]


def player(num_envs: int, steps_a_call: int) -> Play:
    """Turns of a number of environments that take some steps in each call."""
    key = jax.random.PRNGKey(0)
    actions = {
        agent: jax.random.uniform(jax.random.fold_in(key, number), (steps_a_call, num_envs, 4))
        for number, agent in enumerate(env.agents)
    }
    _, first = jax.vmap(env.reset)(jax.random.split(key, num_envs))

    @jax.jit  # type: ignore[untyped-decorator]
    def chunk(states: Any, key: Any) -> tuple[Any, ...]:
        """Some steps of all environments; what they return is summed up, lest the compiler drop it."""

        def one(carry: Any, chosen: Any) -> Any:
            states, key = carry
            key, own = jax.random.split(key)
            live = states.unit_alive.sum()
            seen, states, rewards, _, _ = jax.vmap(env.step_env)(jax.random.split(own, num_envs), states, chosen)
            checksum = sum(part.sum() for part in seen.values()) + sum(part.sum() for part in rewards.values())
            return (states, key), (live, checksum)

        (states, key), (live, checksums) = jax.lax.scan(one, (states, key), actions)
        return states, key, live.sum(), checksums.sum()

    def play(seconds: float) -> tuple[float, int, int, int]:
        """Whole episodes: the longer they last, the fewer are alive; resets are off the clock."""
        busy, calls, live_steps = 0.0, 0, 0
        while not calls or busy < seconds:
            states, running = first, key
            for _ in range(EPISODE // steps_a_call):
                start = time.perf_counter()
                states, running, live, checksum = chunk(states, running)
                jax.block_until_ready((states, live, checksum))
                busy += time.perf_counter() - start
                calls += 1
                live_steps += int(live)
        steps = calls * steps_a_call * num_envs
        return busy, steps, steps * env.num_agents, live_steps

    return play


def best() -> Play:
    """The player whose second turn was the fastest; the first one compiles."""
    players = [player(*candidate) for candidate in CANDIDATES]
    rates = []
    for play in players:
        play(0.0)
        busy, *_, live_steps = play(0.2)
        rates.append(live_steps / busy)
    fastest = rates.index(max(rates))
    print("{} environments, {} steps a call".format(*CANDIDATES[fastest]), file=sys.stderr)
    return players[fastest]


serve(best() if sys.argv[1] == "best" else player(int(sys.argv[1]), int(sys.argv[2])), floats)
