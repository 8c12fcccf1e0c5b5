"""Live agent-steps per second through every face, on one core, between scripted novices (their own cost apart).

Run ``python benchmarks/faces.py``; ``--seconds`` sets the time per row. Rows are interleaved over several rounds and
medians are printed, beside the times of a map and of resets, and the time from import to the first step, cache cold and
warm.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

import echelon_env
from echelon_env import BattleBatchEnv, BattleEngine, BattleVectorEnv, MapPool, make_config, opponents
from echelon_env.terrain import generate

BATCH = 16


class Replay:
    """A policy that plays what it is given, so that nobody's thinking is timed."""

    actions: np.ndarray

    def reset(self, mask: np.ndarray) -> None:
        pass

    def act(self, observations: np.ndarray) -> np.ndarray:
        return self.actions


def novices(engine: BattleEngine) -> Callable[[], np.ndarray]:
    player = opponents.make("novice")

    def act() -> np.ndarray:
        observations = engine.out.observations
        return player.act(observations.reshape(-1, engine.observation_dim)).reshape(*observations.shape[:2], -1)

    return act


def run(engine: BattleEngine, step: Callable[[np.ndarray], None], restart: Callable[[], None], seconds: float) -> float:
    """Live agent-steps per second of `step`, with battles restarted (not timed) when all are over."""
    act = novices(engine)
    restart()
    busy, agent_steps = 0.0, 0
    while busy < seconds:
        actions = act()
        agent_steps += int(engine.alive[~engine.battle_over].sum())
        start = time.perf_counter()
        step(actions)
        busy += time.perf_counter() - start
        if engine.battle_over.all():
            restart()
    return agent_steps / busy


def engine_face(scenario: str, seconds: float) -> float:
    engine = BattleEngine(scenario, BATCH)
    return run(engine, engine.step, lambda: engine.reset(np.arange(BATCH)), seconds)


def vector_face(scenario: str, seconds: float) -> float:
    """All mechs of blue through the vector env, red inside; both replay what the novices chose.

    Its battles begin anew by themselves, which is timed; on maps of a pool, as one would train.
    """
    replay = Replay()
    pool = MapPool.generate(scenario, 20)
    envs = BattleVectorEnv(
        scenario, BATCH, control="team", opponent=replay, autoreset_mode="NEXT_STEP", maps=pool
    )  # fmt: skip
    engine = envs._battles.engine
    blue = len(engine.config.blue)

    def step(actions: np.ndarray) -> None:
        replay.actions = actions[:, blue:].reshape(-1, engine.action_dim)
        envs.step(actions[:, :blue].reshape(BATCH, -1))

    return run(engine, step, lambda: envs.reset(seed=0), seconds)


def parallel_face(scenario: str, seconds: float) -> float:
    env = echelon_env.parallel_env(scenario)
    engine = env._engine
    row = {agent: i for i, agent in enumerate(env.possible_agents)}

    def step(actions: np.ndarray) -> None:
        if env.agents:
            env.step({agent: actions[0, row[agent]] for agent in env.agents})

    return run(engine, step, lambda: env.reset(seed=0), seconds)


def batch_face(scenario: str, seconds: float) -> float:
    """Every mech a row; battles begin anew by themselves, which is timed, on maps of a pool."""
    envs = BattleBatchEnv(scenario, BATCH, maps=MapPool.generate(scenario, 20))
    return run(envs._battles.engine, envs.step, lambda: envs.reset(seed=0), seconds)


FACES = {
    "engine, 16 battles": engine_face,
    "batch env, 16": batch_face,
    "vector env, 16": vector_face,
    "parallel env, 1": parallel_face,
}


def milliseconds(act: Callable[[int], object], times: int) -> float:
    taken = []
    for seed in range(times):
        start = time.perf_counter()
        act(seed)
        taken.append(1000 * (time.perf_counter() - start))
    return statistics.median(taken)


def map_milliseconds(scenario: str) -> float:
    config = make_config(scenario)
    return milliseconds(lambda seed: generate(config, seed), 100)


def reset_milliseconds(scenario: str, maps: int | None) -> float:
    engine = BattleEngine(scenario, 1, maps=maps)
    if engine.maps is not None:
        for number in range(len(engine.maps)):
            _ = engine.maps[number]
    return milliseconds(lambda seed: engine.reset([seed]), 100)


def first_step_seconds() -> tuple[float, float]:
    """From import to the first step in a new process, with an empty and with a filled kernel cache."""
    code = (
        "import numpy as np, echelon_env; e = echelon_env.BattleEngine('skirmish', 1); e.reset([0]);"
        "e.step(np.zeros((1, e.num_mechs, e.action_dim), np.float32))"
    )
    with tempfile.TemporaryDirectory() as cache:
        times = []
        for _ in range(4):
            start = time.perf_counter()
            subprocess.run(
                [sys.executable, "-c", code], env=os.environ | {"ECHELON_CACHE_DIR": cache}, check=True,
                capture_output=True,
            )  # fmt: skip
            times.append(time.perf_counter() - start)
    return times[0], statistics.median(times[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="time per row and round")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    scenarios = ("skirmish", "battle")
    results: dict[tuple[str, str], list[float]] = {(face, scenario): [] for face in FACES for scenario in scenarios}
    for _ in range(options.rounds):
        for face, scenario in results:
            results[face, scenario].append(FACES[face](scenario, options.seconds))
    print(f"{'live agent-steps/s, one thread':32}" + "".join(f"{scenario:>12}" for scenario in scenarios))
    for face in FACES:
        medians = (statistics.median(results[face, scenario]) for scenario in scenarios)
        print(f"{face:32}" + "".join(f"{median:12,.0f}" for median in medians))
    for what, measure in (
        ("making a map, ms", map_milliseconds),
        ("reset, ms", lambda scenario: reset_milliseconds(scenario, None)),
        ("reset on a map of a pool, ms", lambda scenario: reset_milliseconds(scenario, 20)),
    ):
        print(f"{what:32}" + "".join(f"{measure(scenario):12.2f}" for scenario in scenarios))
    cold, warm = first_step_seconds()
    print(f"import to first step: {cold:.1f} s with a cold kernel cache, {warm:.2f} s with a warm one")


if __name__ == "__main__":
    main()
