"""Echelon: team-versus-team mech battles on procedural voxel terrain, for multi-agent reinforcement learning."""

from importlib.metadata import version

from echelon_env import opponents
from echelon_env.config.battle import BattleConfig
from echelon_env.config.curriculum import Curriculum, Progress, make_curriculum
from echelon_env.config.scenario import Scenario, load_scenario, make_config, scenario_names, scenarios
from echelon_env.config.schema import ConfigError
from echelon_env.engine.core import BattleEngine, NotResetError
from echelon_env.engine.kernels import Backend, BackendError, backend
from echelon_env.engine.maps import MapPool
from echelon_env.engine.possibilities import Possibilities
from echelon_env.envs.aec import env
from echelon_env.envs.batch import BattleBatchEnv
from echelon_env.envs.controlled import ControlledBattles
from echelon_env.envs.curriculum import CurriculumEnv, CurriculumParallelEnv
from echelon_env.envs.parallel import BattleParallelEnv, parallel_env
from echelon_env.envs.registration import register_all
from echelon_env.envs.single import BattleEnv
from echelon_env.envs.vector import BattleVectorEnv

__version__ = version("echelon-env")
"""The installed version."""

register_all()

__all__ = [
    "Backend",
    "BackendError",
    "BattleBatchEnv",
    "BattleConfig",
    "BattleEngine",
    "BattleEnv",
    "BattleParallelEnv",
    "BattleVectorEnv",
    "ConfigError",
    "ControlledBattles",
    "Curriculum",
    "CurriculumEnv",
    "CurriculumParallelEnv",
    "MapPool",
    "NotResetError",
    "Possibilities",
    "Progress",
    "Scenario",
    "__version__",
    "backend",
    "env",
    "load_scenario",
    "make_config",
    "make_curriculum",
    "opponents",
    "parallel_env",
    "scenario_names",
    "scenarios",
]
