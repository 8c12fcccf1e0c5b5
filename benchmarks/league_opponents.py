"""What opponents of the league cost: ``python -m benchmarks.league_opponents --help``.

A rollout of `skirmish` with the shipped network is collected against one policy in all battles, against several
different ones, and against a scripted level.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import time
from collections.abc import Callable

import numpy as np
from stable_baselines3.common.logger import Logger

from benchmarks.tables import Cell, Table, as_text
from benchmarks.timing import interleaved, spread_note
from echelon_env.config.opponent import Opponents
from echelon_env.layout.actions import ACTION_DIM
from echelon_train.config.files import load_run_config
from echelon_train.opponents.pool import OpponentPool
from echelon_train.policy import BattlePolicy, build_policy
from echelon_train.runs.building import build_model, make_env

MEMBERS = 1, 2, 4, 8
SCRIPTED = "novice"
BEFORE = 100
"""Decisions before the first rollout that is timed: by then battles are out of step."""


class Collector:
    """Rollouts against opponents, with the network and the opponents on a device."""

    def __init__(self, members: int, battles: int, device: str = "cpu", threads: int = 1, before: int = BEFORE) -> None:
        config = load_run_config("skirmish", {"battles": str(battles), "maps": "16", "threads": str(threads)})
        config = dataclasses.replace(config, opponent=Opponents.parse(SCRIPTED))
        names = [str(number) for number in range(members)]
        drawn = 0

        def draw(count: int) -> list[str]:
            nonlocal drawn
            drawn += count
            return [names[number % members] for number in range(drawn - count, drawn)]

        def load(name: str) -> BattlePolicy:
            policy = build_policy(config.network, int(name))
            policy.set_training_mode(False)
            return policy

        pool = OpponentPool(config.battle, draw, load, device=device, num_threads=threads) if members else None
        env = make_env(config, opponent=pool)
        self.model = build_model(config, env, device)
        self.model.set_logger(Logger(None, []))
        _, self._callback = self.model._setup_learn(2**62, None)
        rng = np.random.default_rng(0)
        for _ in range(before):
            self.model._last_obs, *_ = env.step(rng.uniform(-1, 1, (env.num_envs, ACTION_DIM)).astype(np.float32))

    def collect(self, clock: Callable[[], float] = time.process_time) -> float:
        """Seconds that a rollout takes, by default of processor time."""
        model, start = self.model, clock()
        model.collect_rollouts(model.env, self._callback, model.rollout_buffer, n_rollout_steps=model.n_steps)
        return clock() - start


def measure(battles: int, rounds: int) -> Table:
    """Seconds of collecting by the kind of opponents."""
    collectors = {f"{count} policies" if count > 1 else "1 policy": Collector(count, battles) for count in MEMBERS}
    collectors[SCRIPTED] = Collector(0, battles)
    turns = interleaved({name: each.collect for name, each in collectors.items()}, rounds)
    one = statistics.median(turns["1 policy"])
    rows: dict[str, tuple[Cell, ...]] = {}
    for name, taken in turns.items():
        rows[name] = statistics.median(taken), statistics.median(taken) / one
    steps = next(iter(collectors.values())).model.n_steps
    notes = (
        f"{battles} battles of skirmish, {steps} decisions, the shipped network; processor time on one thread, medians "
        f"of {rounds} rounds.",
        spread_note(turns.values()),
    )
    return Table("opponents", "Collecting a rollout by the kind of opponents", "", ("s", "x 1 policy"), rows, notes)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.league_opponents", description=__doc__)
    parser.add_argument("--battles", type=int, default=64, help="fought at once (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="of every kind (default: %(default)s)")
    options = parser.parse_args()
    print(as_text(measure(options.battles, options.rounds)))


if __name__ == "__main__":
    main()
