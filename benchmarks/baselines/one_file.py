"""The script ``examples/cleanrl_ppo.py`` on battles of whole teams."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.baselines.budget import BudgetSpentError, Clock
from benchmarks.baselines.discrete import TeamVectorEnv
from benchmarks.baselines.stock import MaskedPlayer
from benchmarks.machine import ROOT
from echelon_env.evaluate import Player
from echelon_env.layout.observations import OBSERVATION_DIM
from echelon_env.spaces.actions import MULTI_DISCRETE_SIZES
from echelon_env.storage.atomic import write_json
from echelon_train import BattleVecEnv, DiscreteActions

WEIGHTS, PROGRESS = "agent.pt", "progress.json"
STEPS_A_MINUTE = {"duel": 400_000, "skirmish": 400_000}
"""Rows that the script steps in a minute of a core, for its schedule; dead mechs are rows, too."""


def _script() -> ModuleType:
    """The script as a module."""
    path = ROOT / "examples" / "cleanrl_ppo.py"
    spec = importlib.util.spec_from_file_location("cleanrl_ppo", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def train(scenario: str, env: BattleVecEnv, seed: int, out: Path, clock: Clock) -> int:
    """Train until the time is over. Returns the decisions of living mechs. A run that is stopped begins again."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    script = _script()
    teams = TeamVectorEnv(DiscreteActions(env), clock)
    script.make = lambda settings, envs, **options: teams  # type: ignore[attr-defined]
    steps = int(STEPS_A_MINUTE[scenario] * clock.limit / 60)
    settings = script.Settings(scenario, "the suite's levels", steps, env.num_envs, seed, 0)
    agent = script.Agent(OBSERVATION_DIM, list(MULTI_DISCRETE_SIZES))
    try:
        script.train(agent, settings)
    except BudgetSpentError:
        teams.close()
    out.mkdir(parents=True, exist_ok=True)
    torch.save(agent.state_dict(), out / WEIGHTS)
    write_json(out / PROGRESS, {"decisions": teams.decisions, "seconds": clock.used})
    return teams.decisions


def player(out: Path) -> Player:
    """The trained agent; it samples its actions."""
    torch.set_num_threads(1)
    script = _script()
    weights = torch.load(out / WEIGHTS, weights_only=True)
    agent = script.Agent(weights["actor.0.weight"].shape[1], list(MULTI_DISCRETE_SIZES))
    agent.load_state_dict(weights)
    return Player("cleanrl", "sampled", lambda config, noise: MaskedPlayer(_Predicts(agent), config, noise))


class _Predicts:
    """An agent with the interface of a policy."""

    def __init__(self, agent: Any) -> None:
        self._agent = agent

    @torch.no_grad()
    def predict(self, observations: NDArray[np.float32], action_masks: NDArray[np.bool_]) -> tuple[Any, None]:
        """Choices (R, parts), and no state."""
        choices, _ = self._agent.act(torch.as_tensor(observations), torch.as_tensor(action_masks))
        return choices.numpy(), None
