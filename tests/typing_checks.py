"""Calls that mypy accepts or refuses; an unused ``type: ignore`` is an error. Nothing runs them."""

import echelon_env
from echelon_env import BattleBatchEnv, BattleEngine, BattleEnv, BattleVectorEnv, ControlledBattles, make_config


def accepted() -> None:
    echelon_env.parallel_env("duel", max_steps=40, observation="dict", terrain={"size": 64}, red=["heavy"])
    echelon_env.env("duel", render_mode="ansi", catalog={"weapons": {"laser": {"damage": 20.0}}})
    BattleEnv("duel", control="team", opponent={"novice": 1.0}, dead_agents="persist")
    BattleEngine("duel", 4, maps=10, rewards={"kill": 1.0})
    make_config("duel", time_limit="terminate")


def refused() -> None:
    echelon_env.parallel_env("duel", max_step=40)  # type: ignore[call-arg]
    echelon_env.env("duel", observation="vector")  # type: ignore[arg-type]
    echelon_env.parallel_env("duel", opponent="novice")  # type: ignore[call-arg]
    BattleEnv("duel", max_step=40)  # type: ignore[call-arg]
    BattleVectorEnv("duel", 4, time_limit="stop")  # type: ignore[arg-type]
    BattleBatchEnv("duel", 4, terain={"size": 64})  # type: ignore[call-arg]
    ControlledBattles("duel", 4, max_steps="40")  # type: ignore[arg-type]
    BattleEngine("duel", 4, max_step=40)  # type: ignore[call-arg]
    make_config("duel", terrain=64)  # type: ignore[arg-type]
