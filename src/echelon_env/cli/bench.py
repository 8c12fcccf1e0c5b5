"""Measure the speed of battles: steps and resets, on one thread and on all cores."""

from __future__ import annotations

import argparse
import os
import statistics
import time

import numpy as np
from numpy.typing import NDArray

from echelon_env.cli.arguments import positive_number
from echelon_env.config.battle import BattleConfig
from echelon_env.config.scenario import make_config
from echelon_env.engine.core import BattleEngine
from echelon_env.evaluate.stamps import describe_machine

REMOVED_OPTIONS = {"--json"}
SIZES = ("duel", "skirmish", "battle", "company")
_MECHS = 160  # mechs in a batch, for every scenario
_STEP_SHARE = 0.7  # of a measurement's time; the rest is for resets
_STEPS_PER_SAMPLE = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add = parser.add_argument
    add("--seconds", type=positive_number, default=14.0, help="total time of the measurements (default: %(default)s)")
    names = ", ".join(SIZES)
    add("--scenarios", nargs="+", default=list(SIZES), metavar="NAME", help=f"names or files (default: {names})")


def run(args: argparse.Namespace) -> int:
    """Measure the scenarios and print a table."""
    configs = {name: make_config(name) for name in args.scenarios}
    threads = sorted({1, os.cpu_count() or 1})
    seconds = args.seconds / (len(args.scenarios) * len(threads))
    print(describe_machine())
    print(f"{'scenario':<14} battles threads {'env-steps/s':>13} {'agent-steps/s':>15} {'reset ms':>10}")
    for name, config in configs.items():
        for num_threads in threads:
            battles = max(num_threads, _MECHS // config.num_mechs)
            env_steps, agent_steps, reset_ms = measure(config, battles, num_threads, seconds)
            print(
                f"{name:<14} {battles:>7} {num_threads:>7} {env_steps:>13,.0f} {agent_steps:>15,.0f} {reset_ms:>10.2f}",
                flush=True,
            )
    return 0


def measure(config: BattleConfig, num_battles: int, num_threads: int, seconds: float) -> tuple[float, float, float]:
    """Measure a batch of battles for about `seconds`, after a warm-up that compiles the kernels.

    Actions are uniformly random. Only running battles count as steps. Time for resets of finished battles is excluded.

    Returns
    -------
    Decisions of battles and of living mechs per second, and the milliseconds per reset of a battle: medians of samples.
    """
    engine = BattleEngine(config, num_battles, num_threads)
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (16, num_battles, engine.num_mechs, engine.action_dim)).astype(np.float32)
    engine.reset(np.arange(num_battles))
    engine.step(actions[0])
    reset_seconds = _sample_resets(engine, seconds * (1 - _STEP_SHARE))
    env_steps, agent_steps = _sample_steps(engine, actions, seconds * _STEP_SHARE)
    engine.close()
    return env_steps, agent_steps, 1000 * reset_seconds / num_battles


def _sample_steps(engine: BattleEngine, actions: NDArray[np.float32], seconds: float) -> tuple[float, float]:
    """Median rates per second: decisions of battles, and decisions of living mechs."""
    env_rates: list[float] = []
    agent_rates: list[float] = []
    seed = engine.num_battles
    deadline = time.perf_counter() + seconds
    while not env_rates or time.perf_counter() < deadline:
        elapsed, env_steps, agent_steps = 0.0, 0, 0
        for k in range(_STEPS_PER_SAMPLE):
            running = ~engine.battle_over
            env_steps += int(running.sum())
            agent_steps += int(engine.alive[running].sum())
            started = time.perf_counter()
            engine.step(actions[k % len(actions)])
            elapsed += time.perf_counter() - started
        env_rates.append(env_steps / elapsed)
        agent_rates.append(agent_steps / elapsed)
        if engine.battle_over.any():
            engine.reset(np.arange(seed, seed + engine.num_battles), engine.battle_over)
            seed += engine.num_battles
    return statistics.median(env_rates), statistics.median(agent_rates)


def _sample_resets(engine: BattleEngine, seconds: float) -> float:
    """Median time of a reset of all battles, in seconds."""
    samples: list[float] = []
    seed = engine.num_battles
    deadline = time.perf_counter() + seconds
    while not samples or time.perf_counter() < deadline:
        started = time.perf_counter()
        engine.reset(np.arange(seed, seed + engine.num_battles))
        samples.append(time.perf_counter() - started)
        seed += engine.num_battles
    return statistics.median(samples)
