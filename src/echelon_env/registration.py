"""The names under which Gymnasium, and PettingZoo where it has a registry, know the environments."""

from __future__ import annotations

import gymnasium
import pettingzoo

from echelon_env.config import PRESETS


def register_all() -> None:
    """Register every preset, such as ``echelon/Duel-v0``, with Gymnasium and with PettingZoo (from its 1.27 on)."""
    for preset in PRESETS:
        name = f"echelon/{preset.capitalize()}-v0"
        gymnasium.register(
            id=name,
            entry_point="echelon_env.single_env:BattleEnv",
            vector_entry_point="echelon_env.vector_env:BattleVectorEnv",
            kwargs={"preset": preset},
        )
        if hasattr(pettingzoo, "register"):
            kwargs = {"preset": preset}
            pettingzoo.register("parallel", name, "echelon_env.pettingzoo_env:parallel_env", kwargs=kwargs)
            pettingzoo.register("aec", name, "echelon_env.pettingzoo_env:env", kwargs=kwargs)
