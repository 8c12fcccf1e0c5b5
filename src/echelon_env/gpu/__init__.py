"""Battles in a GPU's memory, as torch tensors, with the same bytes as on the CPU. It needs torch."""

import importlib.util

if importlib.util.find_spec("torch") is None:
    raise ImportError("echelon_env.gpu needs torch: pip install torch", name=__name__)

from echelon_env.gpu.env import TorchBattleEnv

__all__ = ["TorchBattleEnv"]
