"""Battles as a stable-baselines3 VecEnv; each row is a mech of the learner's team."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack, get_args

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from echelon_env.config.battle import BattleConfig, RewardConfig
from echelon_env.config.opponent import SELF
from echelon_env.config.overrides import Overrides
from echelon_env.config.scenario import make_config
from echelon_env.config.schema import ConfigError, check_integer, nearest_name
from echelon_env.engine.boundary import read_actions
from echelon_env.engine.maps import Maps
from echelon_env.engine.state import BLUE, RED
from echelon_env.envs.controlled import ControlledBattles, check_arguments, make_policy
from echelon_env.evaluate import TRAINING_SEEDS, check_seeds, training_seed
from echelon_env.opponents import Policy, PolicyLike
from echelon_env.opponents.policy import close_policy
from echelon_env.render.frame import render_frame
from echelon_env.render.screen import render_fps
from echelon_env.storage.arrays import Arrays, Kind, check_arrays, check_same, named, part_of, without
from echelon_train.config.train import battle_config
from echelon_train.opponents.both_teams import LearnerOrOpponent
from echelon_train.policy import action_space, observation_space
from echelon_train.ppo.observations import page_locked
from echelon_train.state_space import state_room, state_space
from echelon_train.training_maps import training_pool

Infos = list[dict[str, Any]]
Observations = NDArray[np.float32] | dict[str, NDArray[np.float32]]
"""(rows, D); with a central critic a dict of ``observation`` (rows, D) and ``state`` (rows, S)."""


Side = Literal["blue", "red", "both"]
SIDES: tuple[Side, ...] = get_args(Side)
"""The learner's teams; those of the engine come first, by their numbers."""


class BattleVecEnv(VecEnv):  # type: ignore[misc]
    """Battles as a vectorised environment: row `battle * n + mech` is a mech of the learner's team of n mechs.

    In the first `self_play` battles the learner plays both teams: row `(num_battles + battle) * n + mech` is a mech of
    the other team of such a battle.

    An episode lasts until its battle ends, for all rows of the battle. Until then a dead mech keeps its row and
    observes only its objective. The next battle starts at once. The learner's team is drawn at random for each battle.

    At the end of a battle, the rows' infos have `terminal_observation`, `TimeLimit.truncated`, `outcome` (1 win, 0
    draw, -1 loss), `is_success`, and `episode` with the unscaled return `r`, the length `l` in decisions and the time
    `t` in seconds since the environment was created. If the opponent has `names`, one for each battle, the infos also
    have that name as `opponent`. In self-play the name is ``"self"``.

    Parameters
    ----------
    config
        The battle; it must have ``dead_agents="persist"``, and teams of equal size unless the learner has one side. The
        name or file of a scenario is its battle with the settings of training, see `battle_config`.
    num_battles
        Battles that are stepped in parallel.
    opponent
        Who plays the other team: an opponent's name, weights of several, or a policy, see `ControlledBattles`.
    side
        The learner's team: ``"blue"``, ``"red"``, or ``"both"``, drawn for every battle.
    self_play
        Number of battles in which the learner plays both teams; it needs side ``"both"``.
    seed
        Seed of all random numbers, in `TRAINING_SEEDS`.
    num_threads
        Threads that step the battles, and share the mechs of an opponent given by name.
    maps
        A number of maps, generated from `seed`; a directory of recipes; or a `MapPool`. None: every battle has a new
        map.
    regenerate
        Number of successive battles on one map.
    central
        Add the global state, for a centralised critic: observations are a dict of ``observation`` and ``state``, the
        state from the view of the learner's team.
    state_mechs
        Mechs that the state has room for, an even number: the own team's come first, the enemy's begin in the middle,
        and what is not filled is 0. By default twice the larger team's; with that of the largest battle one critic goes
        through a curriculum.
    render_mode
        ``"rgb_array"``: `get_images` has a picture of each battle, for `VecVideoRecorder` and ``render("human")``.
    **overrides
        Fields of the configuration to change.

    Raises
    ------
    ConfigError
        If the configuration does not fit, the opponent is unknown, a map is reserved for evaluation, `state_mechs` is
        odd, too small, or given without `central`, or `self_play` exceeds `num_battles` or is given with one side.
    ValueError
        For a seed that is not in `TRAINING_SEEDS`.
    """

    def __init__(
        self,
        config: BattleConfig | str | os.PathLike[str],
        num_battles: int = 1,
        *,
        opponent: PolicyLike = "novice",
        side: Side = "both",
        self_play: int = 0,
        seed: int = 0,
        num_threads: int = 1,
        maps: Maps = None,
        regenerate: int = 1,
        central: bool = False,
        state_mechs: int | None = None,
        render_mode: Literal["rgb_array"] | None = None,
        **overrides: Unpack[Overrides],
    ) -> None:
        check_arguments(overrides, BattleVecEnv)
        if not isinstance(config, BattleConfig):
            config = battle_config(config)
        config = make_config(config, **overrides)
        check_battles(config, num_battles, side, self_play)
        check_seeds([seed], TRAINING_SEEDS)
        if render_mode not in (None, "rgb_array"):
            raise ConfigError(f"render_mode: expected None or 'rgb_array', got {render_mode!r}", "render_mode")
        self.render_mode = render_mode
        self.num_battles = num_battles
        self._side = side
        self.team_size = len(config.red if side == "red" else config.blue)
        self._regenerate = check_integer("regenerate", regenerate)
        self._state_mechs = state_room(config, state_mechs) if central else None
        if state_mechs is not None and not central:
            raise ConfigError("state_mechs: needs central = True")
        space: spaces.Space[Any] = observation_space()
        if self._state_mechs is not None:
            space = spaces.Dict({"observation": space, "state": state_space(self._state_mechs)})
        super().__init__((num_battles + self_play) * self.team_size, space, action_space())
        self.metadata["render_fps"] = render_fps(config)
        self._own_rows = num_battles * self.team_size
        self._self_play = self_play
        self._given_opponent = opponent
        self._opponent = make_policy("opponent", opponent, seed, config, num_threads)
        self._other_teams = LearnerOrOpponent(self._opponent, self.num_envs - self._own_rows)
        self.battles = ControlledBattles(
            config,
            num_battles,
            control="team",
            opponent=self._other_teams if self_play else self._opponent,
            side=RED if side == "red" else BLUE,
            num_threads=num_threads,
            maps=training_pool(maps, config, seed),
            seed=seed,
        )
        self.engine = self.battles.engine
        """The battles' engine, for tools such as `echelon_env.replays.Recorder`. Only read it."""
        self._run_seed = seed
        self._episodes = np.zeros(num_battles, np.int64)
        self._returns = np.zeros(self.num_envs)
        self._lengths = np.zeros(num_battles, np.int64)
        self._started = time.perf_counter()
        self._actions: NDArray[np.float32] = np.zeros((self.num_envs, *self.action_space.shape), np.float32)

    @property
    def opponent(self) -> Policy:
        """Who plays the other team, where the learner does not."""
        return self._opponent

    @property
    def self_play(self) -> int:
        """Battles in which the learner plays both teams."""
        return self._self_play

    @property
    def state_rows(self) -> int:
        """Rows in succession that have the same global state: the mechs of a team; 1 without states."""
        return 1 if self._state_mechs is None else self.team_size

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Set the seed of the battles from the next reset on; None keeps the current one.

        Raises ValueError for a seed that is not in `TRAINING_SEEDS`.
        """
        if seed is not None:
            check_seeds([seed], TRAINING_SEEDS)
            self._run_seed = seed
            self._episodes[:] = 0
        return [self._run_seed] * self.num_envs

    def reset(self) -> Observations:
        """Start new battles in all rows. Returns `Observations`, float32."""
        self._start_battles(np.ones(self.num_battles, np.bool_))
        return self._observations()

    def step_async(self, actions: NDArray[np.float32]) -> None:
        """Set the actions (rows, A) of the next step. Raises ValueError for others."""
        self._actions = read_actions(actions, self._actions.shape, "actions (rows, action)")

    def step_wait(self) -> tuple[Observations, NDArray[np.float32], NDArray[np.bool_], Infos]:
        """Step all battles and restart those that end. Returns new arrays (rows, ...), and infos."""
        self._other_teams.actions = self._actions[self._own_rows :]
        self.battles.advance(self._actions[: self._own_rows].reshape(self.num_battles, self.team_size, -1))
        out = self.engine.out
        rewards = self._rows(out.rewards)
        self._returns += rewards
        self._lengths += 1
        over = self.battles.battle_over
        infos: Infos = [{} for _ in range(self.num_envs)]
        if over.any():
            self._report_episodes(over, self._rows(out.truncated), infos)
            self._start_battles(over)
        return self._observations(), rewards, self._of_teams(over), infos

    def pin_memory(self) -> None:
        """Write observations into page-locked memory from now on, if there is any, from which a GPU copies faster."""
        self.engine.observation_rows.use_memory(page_locked)

    def set_rewards(self, rewards: RewardConfig) -> None:
        """Change the reward weights from the next step on; current battles, and their returns so far, continue.

        Raises ValueError for another discount `gamma`, and `ConfigError` for invalid weights, with nothing changed.
        """
        self.battles.set_rewards(rewards)

    def state_arrays(self) -> Arrays:
        """The complete state of the environment as arrays by name, for `restore_arrays`.

        It has the state of the battles and of the opponent, the counters of episodes, the current reward weights, and
        the content hashes of the maps that the pool has generated, but not the wall-clock time. Arrays are numeric or
        boolean, without records and objects, so that safetensors and `numpy.savez` can write them.

        Raises `NotResetError` before the first reset, and `ConfigError` for an opponent that is not `Resumable`.
        """
        arrays = {name: getattr(self, f"_{name}").copy() for name in self._counter_kinds()}
        arrays["run"] = np.array([self._run_seed, self._regenerate], np.int64)
        return arrays | named("battles", self.battles.state_arrays())

    def restore_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> Observations:
        """Restore the `state_arrays` of an environment that was created with the same arguments.

        Only `num_threads`, `central` and `state_mechs` may differ. Returns the current `Observations`, as `reset` does.

        Raises ValueError, with nothing changed, if the arrays are invalid or of another environment, and `ConfigError`
        for an opponent that is not `Resumable`.
        """
        own = without(arrays, "battles")
        check_arrays("the environment", own, {**self._counter_kinds(), "run": ((2,), np.int64)})
        run_seed, regenerate = own["run"].tolist()
        check_same("the environment", "regenerate", self._regenerate, regenerate)
        check_seeds([run_seed], TRAINING_SEEDS)
        if (own["episodes"] < 1).any() or (own["lengths"] < 0).any() or not np.isfinite(own["returns"]).all():
            raise ValueError("state of the environment: expected episodes from 1, lengths from 0 and finite returns")
        self.battles.restore_arrays(part_of(arrays, "battles"))
        self._run_seed = run_seed
        for name in self._counter_kinds():
            setattr(self, f"_{name}", own[name].copy())
        return self._observations()

    def get_images(self) -> list[NDArray[np.uint8]]:
        """A picture (H, W, 3) uint8 of each battle, which all its rows share; `render` puts them side by side."""
        return [render_frame(self.battles.config, self.engine.state, battle) for battle in range(self.num_battles)]

    def close(self) -> None:
        """Stop the threads of the engine and of an opponent that was given by name."""
        self.battles.close()
        if self._opponent is not self._given_opponent:
            close_policy(self._opponent)

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The environment's attribute, once for each requested row. Raises AttributeError."""
        return [getattr(self, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of the environment; since rows share it, only for all rows."""
        self._check_all_rows(indices, "set an attribute")
        setattr(self, attr_name, value)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """Call a method of the environment once; all rows get its result."""
        self._check_all_rows(indices, "call a method")
        return [getattr(self, method_name)(*method_args, **method_kwargs)] * self.num_envs

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Any = None) -> list[bool]:
        """True for SB3's `Monitor`, because rows report their episodes as it does; False for other wrappers."""
        return [wrapper_class.__name__ == "Monitor" for _ in self._get_indices(indices)]

    def _start_battles(self, mask: NDArray[np.bool_]) -> None:
        """Start new battles where `mask` is True; their seeds and the learner's sides follow from the run's seed."""
        seeds, map_seeds = np.zeros((2, self.num_battles), np.uint64)
        sides = np.zeros(self.num_battles, np.int8)
        for index in np.flatnonzero(mask).tolist():
            episode = int(self._episodes[index])
            seeds[index] = seed = training_seed(self._run_seed, index, episode)
            map_seeds[index] = training_seed(self._run_seed, index, episode - episode % self._regenerate)
            sides[index] = learner_side(seed) if self._side == "both" else SIDES.index(self._side)
        self.battles.start(seeds, mask, sides, map_seeds)
        self._episodes[mask] += 1
        self._lengths[mask] = 0
        self._returns[self._of_teams(mask)] = 0.0

    def _report_episodes(self, over: NDArray[np.bool_], truncated: NDArray[np.bool_], infos: Infos) -> None:
        now = round(time.perf_counter() - self._started, 6)
        names, outcomes = getattr(self._opponent, "names", None), self.battles.learner_outcome
        teams = np.flatnonzero(np.concatenate([over, over[: self._self_play]]))
        states = None if self._state_mechs is None else self._states(teams)
        for place, row in enumerate(np.flatnonzero(self._of_teams(over)).tolist()):
            battle = row // self.team_size % self.num_battles
            outcome = int(outcomes[battle]) * (1 if row < self._own_rows else -1)
            last: Any = self._seen[row].copy()
            if states is not None:
                last = {"observation": last, "state": states[place // self.team_size].copy()}
            infos[row] = {
                "terminal_observation": last,
                "TimeLimit.truncated": bool(truncated[row]),
                "outcome": outcome,
                "is_success": outcome > 0,
                "episode": {"r": float(self._returns[row]), "l": int(self._lengths[battle]), "t": now},
            }
            if battle < self._self_play:
                infos[row]["opponent"] = SELF
            elif names is not None:
                infos[row]["opponent"] = names[battle - self._self_play]

    @property
    def _seen(self) -> NDArray[np.float32]:
        """The engine's array of the rows' observations: the opponent's first rows, of self-play, follow the own."""
        return self.engine.observation_rows.array[: self.num_envs]

    def _observations(self) -> Observations:
        """The current observations of all rows."""
        observations, self.engine.observation_rows.given = self._seen, True
        if self._state_mechs is None:
            return observations
        teams = np.arange(self.num_battles + self._self_play)
        return {"observation": observations, "state": np.repeat(self._states(teams), self.team_size, axis=0)}

    def _states(self, teams: NDArray[np.int64]) -> NDArray[np.float32]:
        """The global states (r, S) of teams (r,) of the learner: one in every battle, then those of self-play."""
        battles, side = teams % self.num_battles, self.battles.side
        sides = np.where(teams < self.num_battles, side[battles], RED - side[battles])
        return self.engine.global_state(sides, battles=battles, mechs=self._state_mechs)

    def _rows(self, array: NDArray[Any]) -> NDArray[Any]:
        """A copy of the rows (rows, ...) of one of the engine's arrays (battles, mechs of both teams, ...)."""
        own = self.battles.rows_of(array).reshape(self._own_rows, *array.shape[2:])
        if not self._self_play:
            return own
        others = self.battles.enemy_rows_of(array)[: self._self_play]
        return np.concatenate([own, others.reshape(-1, *array.shape[2:])])

    def _of_teams(self, battles: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """An entry for each row (rows,), from one for each battle (battles,)."""
        return np.repeat(np.concatenate([battles, battles[: self._self_play]]), self.team_size)

    def _counter_kinds(self) -> dict[str, Kind]:
        """Shapes and dtypes of the counters of episodes."""
        return {
            "episodes": ((self.num_battles,), np.int64),
            "lengths": ((self.num_battles,), np.int64),
            "returns": ((self.num_envs,), np.float64),
        }

    def _check_all_rows(self, indices: Any, what: str) -> None:
        if set(self._get_indices(indices)) != set(range(self.num_envs)):
            raise ValueError(f"rows share one environment: cannot {what} for some rows only")


def check_battles(config: BattleConfig, num_battles: int, side: str, self_play: int) -> None:
    """Raise `ConfigError` for arguments of `BattleVecEnv` that do not fit each other."""
    if config.dead_agents != "persist":
        raise ConfigError(
            "BattleVecEnv needs dead_agents = 'persist', as battle_config() sets it: a row's episode is the battle"
        )
    if side not in SIDES:
        raise ConfigError(f"side: got {side!r}{nearest_name(str(side), SIDES)}", "side")
    if side == "both" and len(config.blue) != len(config.red):
        raise ConfigError(
            f"side: teams of {len(config.blue)} and {len(config.red)} mechs need a learner with one side: "
            "expected 'blue' or 'red'",
            "side",
        )
    check_integer("num_battles", num_battles)
    if check_integer("self_play", self_play, 0) > (num_battles if side == "both" else 0):
        raise ConfigError(
            f"self_play: expected at most all {num_battles} battles, and none if the learner has one side, got "
            f"{self_play} with side {side!r}"
        )


def learner_side(seed: int) -> int:
    """The learner's team, 0 or 1, in the training battle with a seed: one bit of a hash of the seed."""
    return training_seed(seed, 0, 0) & 1
