"""Echelon: team-versus-team mech battles on procedural voxel terrain, for multi-agent reinforcement learning.

Every mech is an agent of a PettingZoo environment, or one mech is that of a Gymnasium environment::

    import echelon_env, gymnasium
    env = echelon_env.parallel_env("skirmish")                          # PettingZoo; echelon_env.env is its AEC form
    observations, infos = env.reset(seed=1)
    env = gymnasium.make("echelon/Duel-v1", opponent="novice")          # one mech, the others are scripted
    print(echelon_env.scenarios())                                      # names for both
"""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from echelon_env import opponents
from echelon_env.config.battle import BattleConfig
from echelon_env.config.scenario import Scenario, load_scenario, make_config, scenario_names, scenarios
from echelon_env.config.schema import ConfigError
from echelon_env.engine.core import BattleEngine, NotResetError
from echelon_env.engine.kernels import Backend, BackendError, backend
from echelon_env.engine.maps import MapPool
from echelon_env.engine.possibilities import Possibilities
from echelon_env.envs.aec import env
from echelon_env.envs.batch import BattleBatchEnv
from echelon_env.envs.controlled import ControlledBattles
from echelon_env.envs.parallel import BattleParallelEnv, parallel_env
from echelon_env.envs.registration import register_all
from echelon_env.envs.single import BattleEnv
from echelon_env.envs.vector import BattleVectorEnv

__version__ = version("echelon-env")
"""The installed version."""

register_all()

_ELSEWHERE = {
    "echelon_env.config": ("Curriculum", "Progress", "make_curriculum"),
    "echelon_env.envs": ("BattleAECEnv", "Event"),
    "echelon_env.evaluate": ("Player", "baseline", "play_match"),
    "echelon_env.gpu": ("TorchBattleEnv",),
    "echelon_env.interop": ("EPyMARLEnv", "SMACEnv"),
    "echelon_env.interop.benchmarl": ("EchelonTask",),
    "echelon_env.interop.torchrl": ("TorchRLEnv",),
    "echelon_env.replays": ("Recorder", "Replay", "read_replay", "write_page", "write_replay"),
    "echelon_env.wrappers": ("TeamVersusPolicy",),
    "echelon_train": (
        "BattlePolicy", "BattleVecEnv", "DiscreteActions", "EchelonRecurrentPPO", "PastPolicies", "SelfPlayCallback",
        "TrainConfig", "TrainError", "battle_config", "load_checkpoint", "load_run_config", "resume", "train",
    ),
}  # fmt: skip
"""Names that are looked for here, by the module that has them."""

if not TYPE_CHECKING:  # type checkers know the names

    def __getattr__(name: str) -> Any:
        """Say where a name is that is looked for here: `from` keeps the sentence of an ImportError only."""
        for module, names in _ELSEWHERE.items():
            if name in names:
                raise ImportError(f"{name} is in {module}: from {module} import {name}", name=__name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
    "MapPool",
    "NotResetError",
    "Possibilities",
    "Scenario",
    "__version__",
    "backend",
    "env",
    "load_scenario",
    "make_config",
    "opponents",
    "parallel_env",
    "scenario_names",
    "scenarios",
]
