"""Compile all kernels where no machine code is installed, so that no later start compiles."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from echelon_env import opponents
from echelon_env.engine.core import BattleEngine
from echelon_env.engine.kernels import backend
from echelon_env.envs.single import BattleEnv
from echelon_env.spaces.explain import explain_action


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command has no options."""


def run(args: argparse.Namespace) -> int:
    """Call every kernel once, and print what it is and how long that takes."""
    chosen = backend()
    print(f"backend: {chosen.name} ({chosen.reason})", flush=True)
    engine = BattleEngine("duel")
    rows = np.zeros((1, engine.observation_dim), np.float32)
    action = np.zeros(engine.action_dim, np.float32)
    steps: dict[str, Callable[[], object]] = {
        "battles": lambda: engine.reset([0]),
        "snapshots": lambda: engine.restore(engine.snapshot()),
        "scripted players": lambda: opponents.make("expert", 0, engine.config).act(rows),
        "handicaps": lambda: opponents.make("expert@aim_error=0.1", 0, engine.config).act(rows),
        "environments": lambda: BattleEnv("duel").reset(seed=0),
        "global states": engine.global_state,
        "trained policies": lambda: opponents.make("champion", 0, engine.config).act(rows),
        "explanations of actions": lambda: explain_action(engine, 0, 0, action, ("one", "other")),
    }
    for number, (what, call) in enumerate(steps.items(), 1):
        begin = time.perf_counter()
        call()
        print(f"{number}/{len(steps)} {what}: {time.perf_counter() - begin:.1f} s", flush=True)
    return 0
