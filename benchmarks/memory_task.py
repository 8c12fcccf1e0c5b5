"""A task that needs a memory, learned with one and without: ``python -m benchmarks.memory_task``.

The results are in benchmarks/memory_task.json, from which `python -m benchmarks.learning_page` makes its table
and its picture.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from benchmarks import machine
from echelon_env.storage.atomic import write_json
from echelon_train.ppo import EchelonRecurrentPPO
from echelon_train.runs.plots import save_comparison
from echelon_train.threads import torch_threads

KEPT = machine.ROOT / "benchmarks" / "memory_task.json"

SEEDS = 1, 2, 3
POLICIES = {"recurrent": False, "without a memory": True}
"""Whether a policy forgets, by its name."""

# 5: episodes begin inside chunks, and chunks inside episodes
DELAY, ROWS, BUDGET = 5, 32, 12_288

EPISODES = 200
"""Of the evaluation of a final policy."""

STEPS, RIGHT = "time/total_timesteps", "rollout/success_rate"


class Remember(gym.Env):
    """A sign is shown at the first step only; the reward is for naming it at the last one."""

    def __init__(self, delay: int = 8) -> None:
        self.observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self._delay = delay

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
        super().reset(seed=seed)
        self._sign = int(self.np_random.integers(2))
        self._step = 0
        return np.array([2.0 * self._sign - 1.0, 1.0], np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray[Any, Any], float, bool, bool, dict[str, Any]]:
        self._step += 1
        over = self._step == self._delay
        reward = (1.0 if action == self._sign else -1.0) if over else 0.0
        return np.zeros(2, np.float32), reward, over, False, {}


class _Answers(BaseCallback):  # type: ignore[misc]
    """The share of right answers, rollout by rollout."""

    def __init__(self) -> None:
        super().__init__()
        self.curve: list[list[float]] = []
        self._right: list[bool] = []

    def _on_step(self) -> bool:
        self._right.extend(self.locals["rewards"][self.locals["dones"]] > 0)
        return True

    def _on_rollout_end(self) -> None:
        self.curve.append([self.num_timesteps, round(float(np.mean(self._right)), 3)])
        self._right.clear()


def run(seed: int, forget: bool) -> dict[str, Any]:
    """Train a policy, and evaluate its mode: its mean reward is 1 at best, and 0 by chance."""
    began = time.process_time()
    model = EchelonRecurrentPPO(
        "MlpLstmPolicy", _envs(), n_steps=24, chunk=1 if forget else 12, batch_size=192, n_epochs=3,
        learning_rate=3e-3, ent_coef=0.01, gamma=0.99, policy_kwargs={"net_arch": [16], "lstm_hidden_size": 16},
        seed=seed, device="cpu",
    )  # fmt: skip
    if forget:
        keep_no_state(model)
    answers = _Answers()
    model.learn(BUDGET, answers)
    seconds = time.process_time() - began
    env = VecMonitor(_envs())
    env.seed(99)
    reward, _ = evaluate_policy(model, env, n_eval_episodes=EPISODES)
    return {
        "seed": seed, "steps": model.num_timesteps, "seconds": seconds, "reward": float(reward),
        "right": (1.0 + float(reward)) / 2.0, "curve": answers.curve,
    }  # fmt: skip


def _envs() -> DummyVecEnv:
    return DummyVecEnv([lambda: Remember(DELAY)] * ROWS)


def keep_no_state(model: Any) -> None:
    """Let the LSTM begin from zero at every step, in rollouts, updates and evaluation: it is then feed-forward."""
    original = type(model.policy)._process_sequence

    def forgetful(features: Any, states: Any, starts: Any, lstm: Any) -> Any:
        return original(features, tuple(torch.zeros_like(state) for state in states), starts, lstm)

    model.policy._process_sequence = forgetful


def kept() -> dict[str, Any]:
    """The stored results."""
    found: dict[str, Any] = json.loads(KEPT.read_text())
    return found


def table(found: Mapping[str, Any]) -> str:
    """The runs as a table in Markdown, and where they were made."""
    lines = [
        "| policy | seed | decisions | CPU seconds | mean reward | right answers |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name in POLICIES:
        for one in found[name]:
            numbers = f"{one['steps']:,} | {one['seconds']:.1f} | {one['reward']:.2f} | {one['right']:.1%}"
            lines.append(f"| {name} | {one['seed']} | {numbers} |")
    return "\n".join([*lines, "", f"{EPISODES} episodes each. Processor: {found['machine']['processor']}."])


def draw(found: Mapping[str, Any], path: Path) -> None:
    """The runs' shares of right answers in training."""
    groups = {
        name: [[{STEPS: steps, RIGHT: share} for steps, share in one["curve"]] for one in found[name]]
        for name in POLICIES
    }
    save_comparison(path, groups, RIGHT, STEPS, "decisions")


def main(arguments: list[str] | None = None) -> int:
    """Make all runs, one after the other, store the results, and print them."""
    argparse.ArgumentParser(prog="python -m benchmarks.memory_task", description=__doc__).parse_args(arguments)
    found: dict[str, Any] = {"machine": machine.describe()}
    with torch_threads(1):
        for name, forget in POLICIES.items():
            found[name] = [run(seed, forget) for seed in SEEDS]
    write_json(KEPT, found)
    print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
