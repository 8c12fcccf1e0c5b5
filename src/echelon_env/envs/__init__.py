"""The environment classes."""

from echelon_env.envs.aec import BattleAECEnv, env
from echelon_env.envs.batch import BattleBatchEnv
from echelon_env.envs.controlled import ControlledBattles
from echelon_env.envs.infos import Event
from echelon_env.envs.parallel import BattleParallelEnv, parallel_env
from echelon_env.envs.single import BattleEnv
from echelon_env.envs.vector import BattleVectorEnv

__all__ = [
    "BattleAECEnv",
    "BattleBatchEnv",
    "BattleEnv",
    "BattleParallelEnv",
    "BattleVectorEnv",
    "ControlledBattles",
    "Event",
    "env",
    "parallel_env",
]
