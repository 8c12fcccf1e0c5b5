"""Registration of the environments with Gymnasium, and with PettingZoo if it has a registry."""

from __future__ import annotations

import gymnasium
import pettingzoo

from echelon_env.config.scenario import scenario_names


def register_all() -> None:
    """Register every shipped scenario with Gymnasium, and with PettingZoo from version 1.27 on.

    The id of ``duel-open`` is ``echelon/DuelOpen-v1``.
    """
    for scenario in scenario_names():
        name = f"echelon/{scenario.title().replace('-', '')}-v1"
        gymnasium.register(
            id=name,
            entry_point="echelon_env.envs.single:BattleEnv",
            vector_entry_point="echelon_env.envs.vector:BattleVectorEnv",
            kwargs={"scenario": scenario},
        )
        if hasattr(pettingzoo, "register"):
            kwargs = {"scenario": scenario}
            pettingzoo.register("parallel", name, "echelon_env.envs.parallel:parallel_env", kwargs=kwargs)
            pettingzoo.register("aec", name, "echelon_env.envs.aec:env", kwargs=kwargs)
