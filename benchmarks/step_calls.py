"""Python functions that run from an environment's `step` to its return, and the number of their files.

``python -m benchmarks.step_calls`` prints a table, and with ``--list`` all functions. A comprehension is no call.
Generated code, such as a named tuple's constructor, is in no file. The opponent is none of the package's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env import BattleBatchEnv, BattleVectorEnv, env, parallel_env
from echelon_env.layout.actions import ACTION_DIM

SCENARIO = "skirmish"


class Idle:
    """A policy that does nothing."""

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Nothing to forget."""

    def act(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        """Zeros."""
        return np.zeros((len(observations), ACTION_DIM), np.float32)


def calls_of(step: Callable[[], Any]) -> list[tuple[str, str]]:
    """The file and the name of every Python function that a call runs, in order."""
    calls: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename != __file__ and not code.co_name.endswith("comp>"):
            calls.append((code.co_filename, code.co_qualname))

    sys.setprofile(note)
    try:
        step()
    finally:
        sys.setprofile(None)
    return calls


def files_of(calls: list[tuple[str, str]]) -> set[str]:
    """The files of functions that are not generated."""
    return {file for file, _ in calls if not file.startswith("<")}


def steps() -> dict[str, Callable[[], Any]]:
    """A step of each environment, in the midst of its battles. As in most loops, the last result is kept."""
    found: dict[str, Callable[[], Any]] = {}
    single = parallel_env(SCENARIO)
    single.reset(seed=0)
    found["parallel"] = _keeping(single.step, dict.fromkeys(single.agents, np.zeros(ACTION_DIM, np.float32)))
    turns = env(SCENARIO)
    turns.reset(seed=0)

    def cycle(action: NDArray[np.float32]) -> None:
        for _ in turns.possible_agents:
            turns.step(action)

    found["AEC, all mechs"] = _keeping(cycle, np.zeros(ACTION_DIM, np.float32))
    for count in (1, 16):
        batch = BattleBatchEnv(SCENARIO, count)
        batch.reset(seed=0)
        found[f"batch of {count}"] = _keeping(batch.step, np.zeros((count, batch.num_mechs, ACTION_DIM), np.float32))
        vector = BattleVectorEnv(SCENARIO, count, control="team", opponent=Idle())
        vector.reset(seed=0)
        found[f"vector of {count}"] = _keeping(vector.step, np.zeros(vector.action_space.shape or (), np.float32))
    return found


def _keeping(step: Callable[[Any], Any], actions: Any) -> Callable[[], Any]:
    kept: list[Any] = [None]

    def again() -> None:
        kept[0] = step(actions)

    for _ in range(3):
        again()
    return again


def main() -> None:
    """Print the table."""
    print("| environment | calls | files |\n|---|---|---|")
    for name, step in steps().items():
        calls = calls_of(step)
        print(f"| {name} | {len(calls)} | {len(files_of(calls))} |")
        if "--list" in sys.argv:
            print(*(f"    {file} {function}" for file, function in calls), sep="\n")


if __name__ == "__main__":
    main()
