"""The interfaces of SMAC (Samvelyan et al., "The StarCraft Multi-Agent Challenge", 2019) and of EPyMARL."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.scenario import ScenarioLike
from echelon_env.config.schema import ConfigError, check_seed
from echelon_env.engine.core import BattleEngine
from echelon_env.envs.controlled import check_arguments
from echelon_env.envs.infos import agent_names
from echelon_env.envs.single import BattleEnv
from echelon_env.layout.observations import OBSERVATION_DIM
from echelon_env.opponents import PolicyLike
from echelon_env.replays import Recorder, write_replay
from echelon_env.spaces import DISCRETE_CHOICES
from echelon_env.storage.atomic import free_path

Floats = NDArray[np.float32]


class SMACEnv:
    """A team of n mechs against an opponent, with the methods of SMAC's `StarCraft2Env`.

    All mechs share one reward, the sum of the components of `RewardConfig`, each the mean over the team. Actions are
    those of ``action="discrete"``. A dead mech has one available action, 0, and observes the objective stream only.

    Parameters
    ----------
    map_name
        A scenario's name or file, a `BattleConfig` or its dict.
    opponent
        The policy of the other team, see `BattleEnv`.
    seed
        Seed of the first battle, from which those of the later ones follow. None: a random one.
    replay_dir
        Folder of `save_replay`. It is made if there is none; the working directory by default.
    replay_prefix
        Begin of the names of the replays. Default: the scenario's name.
    **kwargs
        Further parameters of `BattleEnv` such as `side`, `maps` and `render_mode`, and fields of the configuration.

    Raises
    ------
    ConfigError
        For invalid arguments.
    """

    def __init__(
        self,
        map_name: ScenarioLike = "skirmish",
        *,
        opponent: PolicyLike = "novice",
        seed: int | None = None,
        replay_dir: str | os.PathLike[str] = "",
        replay_prefix: str = "",
        **kwargs: Any,
    ) -> None:
        if given := kwargs.keys() & {"action", "control", "mask_in_observation", "observation"}:
            raise ConfigError(f"{', '.join(sorted(given))}: the interface of SMAC chooses these")
        check_arguments(kwargs, SMACEnv, BattleEnv)
        self._env = BattleEnv(map_name, control="team", opponent=opponent, action="discrete", **kwargs)
        self._seed = None if seed is None else check_seed(seed)
        self.n_agents = len(self._env.mechs)
        """Number of mechs of the team."""
        steps = self._env.config.max_steps
        self.episode_limit = min(steps, kwargs.get("max_cycles") or steps)
        """Maximum number of decisions of a battle."""
        self.engine = self._env.engine
        """The battle's engine, for tools such as `echelon_env.replays.Recorder`. Only read it."""
        self._own = np.isin(agent_names(self._env.config), self._env.mechs)
        self._observations: list[Floats] = []
        self._played: list[Floats] = []  # what all mechs have done in the battle
        named = Path(map_name).stem if isinstance(map_name, (str, os.PathLike)) else "battle"
        self._replay_path = Path(replay_dir, f"{replay_prefix or named}.replay")
        players = "learner", opponent if isinstance(opponent, str) else "opponent"
        self._players = players if self._own[0] else players[::-1]
        self._games = self._wins = self._timeouts = 0

    def reset(self) -> Any:
        """Start a battle. Returns the observations and the state."""
        seed, self._seed = self._seed, None
        self._observe(self._env.reset(seed=seed)[0])
        self._played = []
        return self.get_obs(), self.get_state()

    def step(self, actions: Any) -> Any:
        """Take a decision with n choices. Returns the reward, whether the battle has ended, and an info.

        The info has ``battle_won``, ``dead_allies`` and ``dead_enemies``; at the battle's end also ``episode_limit``:
        whether the time limit has ended it, so that the value of the last state counts.

        Raises ValueError for actions that are not in the space, ResetNeeded before `reset` and after the battle's end.
        """
        reward, terminated, truncated, info = self._step(actions)
        return reward, terminated or truncated, info

    def _step(self, actions: Any) -> tuple[float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, infos = self._env.step(actions)
        self._observe(observation)
        self._played.append(self.engine.actions[0].copy())
        over = terminated or truncated
        won = over and infos["outcome"] > 0
        self._games, self._wins = self._games + over, self._wins + won
        self._timeouts += truncated or infos["reason"] == "time_limit"
        dead = self.engine.state.mechs["alive"][0] == 0
        info = {
            "battle_won": won,
            "dead_allies": int(dead[self._own].sum()),
            "dead_enemies": int(dead[~self._own].sum()),
        }
        return reward, terminated, truncated, info | ({"episode_limit": truncated} if over else {})

    def _observe(self, observation: Floats) -> None:
        self._observations = [*observation.reshape(self.n_agents, -1)]

    def get_obs(self) -> list[Floats]:
        """The mechs' observations, n of (D,) float32."""
        return self._observations

    def get_obs_agent(self, agent_id: int) -> Floats:
        """A mech's observation (D,) float32."""
        return self._observations[agent_id]

    def get_obs_size(self) -> int:
        """Length of an observation."""
        return OBSERVATION_DIM

    def get_state(self) -> Floats:
        """The global state (S,) float32: all mechs, visible or not, those of the team first."""
        return self._env.state()

    def get_state_size(self) -> int:
        """Length of the global state."""
        return len(self._env.state_space.low)

    def get_avail_actions(self) -> list[list[int]]:
        """For each mech 1 for the available actions and 0 for the others."""
        masks: list[list[int]] = self._env.action_masks().reshape(self.n_agents, -1).astype(int).tolist()
        return masks

    def get_avail_agent_actions(self, agent_id: int) -> list[int]:
        """1 for a mech's available actions and 0 for the others."""
        return self.get_avail_actions()[agent_id]

    def get_total_actions(self) -> int:
        """Number of actions of a mech, available or not."""
        return len(DISCRETE_CHOICES)

    def get_env_info(self) -> dict[str, int]:
        """The sizes that a learner needs."""
        return {
            "state_shape": self.get_state_size(), "obs_shape": self.get_obs_size(),
            "n_actions": self.get_total_actions(), "n_agents": self.n_agents, "episode_limit": self.episode_limit,
        }  # fmt: skip

    def get_stats(self) -> dict[str, float]:
        """Battles won, played and ended by the time limit, and the win rate, since the environment was made."""
        return {
            "battles_won": self._wins, "battles_game": self._games, "timeouts": self._timeouts, "restarts": 0,
            "win_rate": self._wins / max(1, self._games),
        }  # fmt: skip

    def seed(self, seed: int | None = None) -> int | None:
        """Set the seed of the next battle, if one is given. Returns the next battle's seed; None if it follows.

        Raises ValueError for one that is not an integer in [0, 2**64).
        """
        if seed is not None:
            self._seed = check_seed(seed)
        return self._seed

    def save_replay(self) -> Path:
        """Write the battle, which may be in progress, to a new file ``<prefix>.replay`` in `replay_dir`.

        The battle is played again to record it, so that the steps of a training do not get slower. Returns the file's
        path. Raises ValueError before the first step of a battle, and OSError.
        """
        if not self._played:
            raise ValueError("save_replay() needs a battle with a decision: call reset() and step() first")
        battle = self.engine.state.battles[0]
        engine = BattleEngine(self._env.config)
        with Recorder(engine, self._players) as recorder:
            engine.reset([battle["seed"]], map_seeds=[battle["map_seed"]])
            for actions in self._played:
                engine.step(actions[None])
            replay = recorder.replays[0] if recorder.replays else recorder.current()
        self._replay_path.parent.mkdir(parents=True, exist_ok=True)
        path = free_path(self._replay_path)
        write_replay(path, replay)
        return path

    def render(self) -> Any:
        """Render the battle, see `BattleEnv.render`."""
        return self._env.render()

    def close(self) -> None:
        """Close the environment."""
        self._env.close()


class EPyMARLEnv(SMACEnv):
    """`SMACEnv` with the methods of EPyMARL's `MultiAgentEnv` of 2024: `reset` and `step` return what Gymnasium's do.

    Register it with EPyMARL's `envs.REGISTRY`, whose entries get `common_reward` and `reward_scalarisation` besides the
    arguments of the configuration file.

    Parameters
    ----------
    common_reward
        Must be true.
    reward_scalarisation
        Ignored: the reward is one number.
    **kwargs
        The parameters of `SMACEnv`.

    Raises
    ------
    ConfigError
        For invalid arguments, and if `common_reward` is false.
    """

    def __init__(self, *, common_reward: bool = True, reward_scalarisation: str = "sum", **kwargs: Any) -> None:
        if not common_reward:
            raise ConfigError("common_reward: expected True, the mechs share one reward, got False", "common_reward")
        super().__init__(**kwargs)

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[list[Floats], dict[str, Any]]:
        """Start a battle. Returns the observations and an empty info."""
        if seed is not None:
            self.seed(seed)
        super().reset()
        return self.get_obs(), {}

    def step(self, actions: Any) -> tuple[list[Floats], float, bool, bool, dict[str, Any]]:
        """Take a decision. Returns observations, reward, whether terminated, whether truncated, and an info.

        The info is that of `SMACEnv.step`.
        """
        reward, terminated, truncated, info = self._step(actions)
        return self.get_obs(), reward, terminated, truncated, info
