"""What PettingZoo's and Gymnasium's checkers leave out: returned memory, and whole episodes repeated."""

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from gymnasium.utils.env_checker import data_equivalence

COPIERS: tuple[Callable[[Any], Any], ...] = (copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env)))


def check_parallel(make: Callable[[], Any], seed: int = 0, max_steps: int = 1000) -> list[Any]:
    """Check a parallel environment over two episodes of at most `max_steps` steps each, and return the results.

    A new environment, a used one, copies from the middle of an episode, and an environment whose actions and results
    are overwritten give the same results. A reset during an episode starts the next one.
    """
    env, twin = make(), make()
    calls, results = play(env, seed, max_steps)
    middle = 1 + calls.index(None) // 2
    repeat(twin, calls, results)
    repeat(env, calls[:middle], results[:middle])
    repeat(env, calls, results, spoil=True)
    for copied in COPIERS:
        repeat(env, calls[:middle], results[:middle])
        for one in (copied(env), env):
            repeat(one, calls[middle:], results[middle:])
    for one in (env, twin):
        repeat(one, calls[: middle + 1], results[: middle + 1])
    following = call(twin, None)
    assert following[-2] == results[0][-2], "agents are missing after a reset during an episode"
    repeat(env, [None], [following])
    for one in (env, env, make()):
        one.close()
    return results


def play(env: Any, seed: int, max_steps: int) -> tuple[list[Any], list[Any]]:
    """Play an episode with a seed and one without. Returns the calls, see `call`, and their results."""
    for number, agent in enumerate(env.possible_agents):
        env.action_space(agent).seed(seed + number)
    calls, results, kept = [], [], []
    for start in (seed, None):
        given: Any = start
        for _ in range(max_steps + 1):
            calls.append(copy.deepcopy(given))
            results.append(call(env, given))
            kept.append(copy.deepcopy(results[-1]))
            assert data_equivalence(given, calls[-1], exact=True), "the environment writes to actions"
            check_values(env, *results[-1])
            if not env.agents:
                break
            given = {agent: sample(env, agent, results[-1]) for agent in env.agents}
    check_memory(results, kept)
    return calls, results


def call(env: Any, given: Any) -> tuple[Any, ...]:
    """The results of a step with a dict of actions, or of a reset with a seed or None; the agents, and the state."""
    results = env.step(given) if isinstance(given, dict) else env.reset(seed=given)
    return *results, list(env.agents), env.state()


def repeat(env: Any, calls: list[Any], results: list[Any], spoil: bool = False) -> None:
    """Compare the results of calls. With `spoil` overwrite actions and results after each call, and render."""
    for number, (given, expected) in enumerate(zip(calls, results, strict=True)):
        actions = copy.deepcopy(given)
        got = call(env, actions)
        assert data_equivalence(got, expected, exact=True), f"call {number} has another result"
        if spoil:
            overwrite((actions, got))
            if env.render_mode:
                env.render()


def sample(env: Any, agent: Any, results: tuple[Any, ...]) -> Any:
    """An action within the mask of the info or of the observation, if there is one."""
    observation, info = results[0][agent], results[-3][agent]
    masked = info if "action_mask" in info or not isinstance(observation, dict) else observation
    return env.action_space(agent).sample(masked.get("action_mask"))


def check_values(env: Any, observations: Any, *others: Any) -> None:
    """Check that values are in their spaces and of their types."""
    *signals, _, _, state = others
    assert all(env.observation_space(agent).contains(observation) for agent, observation in observations.items())
    assert env.state_space.contains(state)
    for values, kind in zip(signals, (float, bool, bool), strict=False):
        assert {type(value) for value in values.values()} == {kind}
        assert np.isfinite([*values.values()]).all()


def check_memory(results: list[Any], kept: list[Any]) -> None:
    """Check that results of calls equal their first copies, and that no writeable array uses memory of another call."""
    assert data_equivalence(results, kept, exact=True), "results change later"
    spans = sorted(
        (*np.lib.array_utils.byte_bounds(part), number)
        for number, each in enumerate(results)
        for part in parts_of(each)
        if isinstance(part, np.ndarray) and part.size and part.flags.writeable
    )
    reach = owner = 0  # the furthest end so far, and its call
    for start, end, number in spans:
        assert start >= reach or number == owner, f"calls {owner} and {number} share memory"
        if end > reach:
            reach, owner = end, number


def parts_of(value: Any) -> Iterator[Any]:
    """A value and all values in it."""
    yield value
    if isinstance(value, dict | list | tuple) or (isinstance(value, np.ndarray) and value.dtype == object):
        for part in value.values() if isinstance(value, dict) else value:
            yield from parts_of(part)


def overwrite(value: Any) -> None:
    """Overwrite the numbers of all writeable arrays in a value, and empty all dicts."""
    for part in [*parts_of(value)]:
        if isinstance(part, dict):
            part.clear()
        elif isinstance(part, np.ndarray) and part.flags.writeable and part.dtype != object:
            part[...] = np.logical_not(part)
