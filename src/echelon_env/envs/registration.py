"""The names under which Gymnasium, and PettingZoo where it has a registry, know the environments."""

from __future__ import annotations

import gymnasium
import pettingzoo

from echelon_env.config.scenario import scenario_names


def register_all() -> None:
    """Register every shipped scenario with Gymnasium, and with PettingZoo (from its 1.27 on).

    ``duel-open`` is known as ``echelon/DuelOpen-v0``.
    """
    for scenario in scenario_names():
        name = f"echelon/{scenario.title().replace('-', '')}-v0"
        gymnasium.register(
            id=name,
            entry_point="echelon_env.envs.single:BattleEnv",
            vector_entry_point="echelon_env.envs.vector:BattleVectorEnv",
            kwargs={"scenario": scenario},
        )
        if hasattr(pettingzoo, "register"):
            kwargs = {"scenario": scenario}
            pettingzoo.register("parallel", name, "echelon_env.envs.parallel:parallel_env", kwargs=kwargs)
            pettingzoo.register("aec", name, "echelon_env.envs.parallel:env", kwargs=kwargs)
