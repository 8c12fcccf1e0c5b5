"""Recurrent PPO, self-play and leagues for teams of mechs on `echelon_env`.

The names below are imported at their first use, so that ``echelon --help`` and the settings do not import torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from echelon_train.checkpoints import load_checkpoint
    from echelon_train.config import TrainConfig, battle_config, load_run_config
    from echelon_train.discrete import DiscreteActions
    from echelon_train.errors import TrainError
    from echelon_train.policy import BattlePolicy
    from echelon_train.ppo import EchelonRecurrentPPO
    from echelon_train.runs.training import resume, train
    from echelon_train.self_play import PastPolicies, SelfPlayCallback
    from echelon_train.vec_env import BattleVecEnv

__all__ = [
    "BattlePolicy",
    "BattleVecEnv",
    "DiscreteActions",
    "EchelonRecurrentPPO",
    "PastPolicies",
    "SelfPlayCallback",
    "TrainConfig",
    "TrainError",
    "battle_config",
    "load_checkpoint",
    "load_run_config",
    "resume",
    "train",
]

_MODULES = {
    "BattlePolicy": "policy",
    "BattleVecEnv": "vec_env",
    "DiscreteActions": "discrete",
    "EchelonRecurrentPPO": "ppo",
    "PastPolicies": "self_play",
    "SelfPlayCallback": "self_play",
    "TrainConfig": "config",
    "TrainError": "errors",
    "battle_config": "config",
    "load_checkpoint": "checkpoints",
    "load_run_config": "config",
    "resume": "runs.training",
    "train": "runs.training",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
