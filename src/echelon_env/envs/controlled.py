"""Battles in which a learner controls some mechs and policies control the others: the base of all environments."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echelon_env import opponents
from echelon_env.config.battle import BattleConfig, RewardConfig
from echelon_env.config.opponent import Opponents
from echelon_env.config.overrides import Overrides
from echelon_env.config.scenario import ScenarioLike, make_config, title_of
from echelon_env.config.schema import ConfigError, UnexpectedArgumentError, check_integer, nearest_name
from echelon_env.engine.boundary import read_actions
from echelon_env.engine.core import BattleEngine
from echelon_env.engine.maps import Maps
from echelon_env.engine.snapshots import engine_arrays, restore_engine
from echelon_env.engine.state import BLUE, DRAW
from echelon_env.envs.assignment import POLICY_ROLES, Assignment, Control, check_sides
from echelon_env.opponents import FunctionPolicy, Mixture, Policy, PolicyLike
from echelon_env.opponents.policy import check_resumable, close_policy
from echelon_env.storage.arrays import Arrays, check_arrays, check_same, named, part_of, without

FEWEST_LENT = 16
"""Rows of the smallest array of observations that callers get without a copy, which costs more for larger ones."""


class ControlledBattles:
    """B battles in which a learner controls n mechs each. Later calls do not change the arrays that a call returns.

    Parameters
    ----------
    scenario
        A scenario's name or file, a `BattleConfig` or its dict.
    num_battles
        Number of battles B.
    control
        ``"pilot"``: one mech per battle (n = 1). ``"team"``: all mechs of a team. ``"all"``: all mechs of both teams.
    opponent
        The other team's policy: an opponent's name, such as a scripted level, weights of several (one is drawn for
        each battle; see `opponents.make`), a `Policy`, or a function from observations (R, D) to actions (R, A). Unused
        with control ``"all"``.
    teammate
        The policy of the pilot's team-mates, in the same formats.
    pilot
        Index of the pilot's mech in its team's roster.
    side
        The learner's team, 0 (blue) or 1 (red), or an array (B,) with the team in each battle. `reset` can change it.
    num_threads
        Threads that share a step: the battles, and the mechs of policies that are given by name.
    maps
        The maps, see `BattleEngine`.
    seed
        Seed of the scripted policies.
    **overrides
        Fields of the configuration to change.

    Raises
    ------
    ConfigError
        For an invalid configuration, an unknown `control` or `opponent`, or different sides with rosters of different
        sizes.
    """

    def __init__(
        self,
        scenario: ScenarioLike = "battle",
        num_battles: int = 1,
        *,
        control: Control = "team",
        opponent: PolicyLike = "novice",
        teammate: PolicyLike = "novice",
        pilot: int = 0,
        side: ArrayLike = BLUE,
        num_threads: int = 1,
        maps: Maps = None,
        seed: int = 0,
        **overrides: Unpack[Overrides],
    ) -> None:
        check_arguments(overrides, ControlledBattles)
        if control not in POLICY_ROLES:
            raise ConfigError(f"unknown control {control!r}{nearest_name(str(control), POLICY_ROLES)}")
        config = make_config(scenario, **overrides)
        self.engine = BattleEngine(config, num_battles, num_threads, maps=maps)
        self.num_battles = num_battles
        self.control = control
        if opponent is teammate and isinstance(opponent, Policy):
            raise ConfigError("opponent and teammate are one object; each needs its own memory")
        seed = check_integer("seed", seed, 0)
        given = {"opponent": opponent, "teammate": teammate}
        self._players = {
            role: make_policy(role, given[role], seed + i, config, num_threads)
            for i, role in enumerate(POLICY_ROLES[control])
        }
        self._sources = {role: f"actions of the {role} {policy!r}" for role, policy in self._players.items()}
        self._named = {role for role in self._players if isinstance(given[role], (str, Mapping, Opponents))}
        self._mixtures = {
            role: policy
            for role, policy in self._players.items()
            if isinstance(policy, Mixture) and role in self._named
        }
        self._pilot = check_integer("pilot", pilot, 0)
        self._assigned = Assignment(config, control, self._pilot, check_sides(side, num_battles))
        self.num_controlled = self._assigned.own.numbers.shape[1]
        self.engine.observation_rows.set_places(self._assigned.places)
        rows = self._assigned.places.size
        self._lends = rows >= FEWEST_LENT and 2 * self._assigned.own.numbers.size >= rows
        self._title = title_of(scenario, config)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._title}, {self.num_battles} battles, {self.control})"

    def reset(
        self,
        seeds: ArrayLike,
        mask: NDArray[np.bool_] | None = None,
        side: ArrayLike | None = None,
        map_seeds: ArrayLike | None = None,
        restart: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.float32]:
        """Start new battles, see `BattleEngine.reset`. `side` (B,) sets the learner's teams in these battles.

        `restart` (B,) bool marks battles that start a new sequence: mixtures of levels given by weights draw the same
        levels as in the first battles. It has no effect on policies given as objects.

        Returns the learner's observations of all battles, (B, n, D) float32.
        """
        self.start(seeds, mask, side, map_seeds, restart)
        return self.observations

    def start(
        self,
        seeds: ArrayLike,
        mask: NDArray[np.bool_] | None = None,
        side: ArrayLike | None = None,
        map_seeds: ArrayLike | None = None,
        restart: NDArray[np.bool_] | None = None,
    ) -> None:
        """Start new battles as `reset` does, and return nothing."""
        chosen = np.ones(self.num_battles, np.bool_) if mask is None else mask
        assigned = self._assigned
        if side is not None:
            sides = np.where(chosen, check_sides(side, self.num_battles), assigned.side)
            assigned = self._assign(sides)
        self.engine.start(seeds, chosen, map_seeds, None if side is None else assigned.places)
        self._assigned = assigned
        for role, policy in self._players.items():
            rows = assigned.others[role].numbers.shape[1]
            policy.reset(np.repeat(chosen, rows))
            if restart is not None and role in self._mixtures:
                self._mixtures[role].restart(np.repeat(chosen & restart, rows))

    def step(
        self, actions: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_]]:
        """Take a decision with the learner's actions (B, n, A). Policies control the other mechs.

        Returns the learner's observations (B, n, D) float32, rewards (B, n) float32, terminated and truncated (B, n)
        bool. Raises ValueError for actions of another shape.
        """
        shape = (self.num_battles, self.num_controlled, self.engine.action_dim)
        self.advance(read_actions(actions, shape, "actions (battles, mechs, action)"))
        out = self.engine.out
        return self.observations, self.rows_of(out.rewards), self.rows_of(out.terminated), self.rows_of(out.truncated)

    def advance(self, actions: NDArray[np.float32]) -> None:
        """Take a decision as `step` does, with actions (B, n, A) float32 that have been checked. Returns nothing."""
        self.engine.actions[self._assigned.own.index] = actions
        for role, policy in self._players.items():
            self._act(role, policy)
        self.engine.advance()

    def set_rewards(self, rewards: RewardConfig) -> None:
        """Set the reward weights for later decisions, see `BattleEngine.set_rewards`."""
        self.engine.set_rewards(rewards)

    def state_arrays(self) -> Arrays:
        """The complete state of the battles and the policies, including the current reward weights.

        Plain arrays of numbers or booleans by name, without records and objects, which any file format can hold.

        Raises `NotResetError` before the first reset, and `ConfigError` for a policy that is not `Resumable`.
        """
        arrays = {"side": self._assigned.side.copy(), "pilot": np.array([self._pilot], np.int64)}
        arrays |= named("engine", engine_arrays(self.engine))
        for role, policy in self._players.items():
            arrays |= named(role, check_resumable(role, policy).state_arrays())
        return arrays

    def restore_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """Restore the `state_arrays` of battles that were created with the same arguments; `num_threads` may differ.

        Returns the learner's observations (B, n, D). Raises ValueError, with nothing changed, for arrays that do not
        fit. Raises `ConfigError` for a policy that is not `Resumable`.
        """
        own = without(arrays, "engine", *self._players)
        check_arrays("the battles", own, {"side": ((self.num_battles,), np.int64), "pilot": ((1,), np.int64)})
        check_same("the battles", "pilot", self._pilot, int(own["pilot"][0]))
        assigned = self._assign(check_sides(own["side"], self.num_battles))
        states = {role: (part_of(arrays, role), assigned.others[role].numbers.size) for role in self._players}
        players = {role: check_resumable(role, policy) for role, policy in self._players.items()}
        for role, player in players.items():
            deepcopy(player).restore_arrays(*states[role])  # raises any error before a change
        restore_engine(self.engine, part_of(arrays, "engine"))
        for role, player in players.items():
            player.restore_arrays(*states[role])
        self._assigned = assigned
        self.engine.observation_rows.set_places(assigned.places)
        self.engine.observe()
        return self.observations

    @property
    def config(self) -> BattleConfig:
        """The battles' configuration."""
        return self.engine.config

    def global_state(self) -> NDArray[np.float32]:
        """The global states (B, S) float32 from the perspective of the learner's teams, see `BattleEngine`."""
        return self.engine.global_state(self._assigned.side)

    @property
    def observations(self) -> NDArray[np.float32]:
        """The current observations of the learner's mechs, (B, n, D) float32, which later calls do not change.

        They are a part of the engine's array, the same until the next call, or a copy: of few rows, as it costs less,
        and of a minority of the mechs, as who keeps a part keeps the array.
        """
        if not self._lends:
            return self.copy_observations()
        rows, own = self.engine.observation_rows, self._assigned.own.numbers
        rows.given = True
        return rows.array[: own.size].reshape(*own.shape, -1)

    def copy_observations(self) -> NDArray[np.float32]:
        """A copy of `observations`: before battles start again, it costs less than another array for the engine."""
        own = self._assigned.own.numbers
        return self.engine.observation_rows.array[: own.size].reshape(*own.shape, -1).copy()

    def rows_of(self, array: NDArray[Any]) -> NDArray[Any]:
        """A copy of the learner's rows (B, n, ...) of one of the engine's arrays (B, M, ...)."""
        return array.copy() if self.control == "all" else self._assigned.own.of(array)

    def enemy_rows_of(self, array: NDArray[Any]) -> NDArray[Any]:
        """A copy of the other team's rows (B, m, ...) of one of the engine's arrays. Not with control ``"all"``."""
        return self._assigned.others["opponent"].of(array)

    @property
    def side(self) -> NDArray[np.int64]:
        """(B,) int64: the learner's team in each battle, 0 blue or 1 red."""
        return self._assigned.side.copy()

    @property
    def rows(self) -> NDArray[np.int64]:
        """(B, n) int64: the rows of the learner's mechs in the engine's arrays."""
        return self._assigned.own.numbers.copy()

    @property
    def alive(self) -> NDArray[np.bool_]:
        """(B, n) bool: whether the learner's mechs are alive."""
        alive: NDArray[np.bool_] = self.engine.state.mechs["alive"][self._assigned.own.index].astype(np.bool_)
        return alive

    @property
    def battle_over(self) -> NDArray[np.bool_]:
        """(B,) bool: whether the battles are over."""
        return self.engine.battle_over

    @property
    def learner_outcome(self) -> NDArray[np.int8]:
        """(B,) int8: 1 for a win, 0 for a draw, -1 for a loss of the learner's team. Valid where `battle_over`."""
        winner = self.engine.winner
        return np.where(winner == DRAW, 0, np.where(winner == self._assigned.side, 1, -1)).astype(np.int8)

    def close(self) -> None:
        """Stop the threads of the engine and of the policies that were given by name."""
        self.engine.close()
        for role in self._named:
            close_policy(self._players[role])

    def _assign(self, side: NDArray[np.int64]) -> Assignment:
        assigned = Assignment(self.config, self.control, self._pilot, side)
        count = assigned.own.numbers.shape[1]
        if count != self.num_controlled:
            raise ConfigError(
                f"side: expected teams of {self.num_controlled} mechs, as at the start, got {count}", "side"
            )
        return assigned

    def _act(self, role: str, policy: Policy) -> None:
        rows = self._assigned.others[role]
        if rows.numbers.shape[1] == 0:
            return
        observations = self.engine.observation_rows.array[self._assigned.parts[role]]
        if role not in self._named:  # the caller's policy may keep them
            if self._lends:
                self.engine.observation_rows.given = True
            else:
                observations = observations.copy()
        actions = policy.act(observations)
        checked = read_actions(actions, (len(observations), self.engine.action_dim), self._sources[role])
        self.engine.actions[rows.index] = checked.reshape(*rows.numbers.shape, -1)


_SYNONYMS = (
    ("num_envs", "num_battles", "n_envs"),
    ("max_cycles", "max_episode_steps"),
    ("scenario", "config", "map_name", "env_name"),
)
"""Names of one thing in classes of this package and in other libraries."""


def check_arguments(
    arguments: Mapping[str, Any], env_class: Callable[..., Any], inner: Callable[..., Any] | None = None
) -> None:
    """Check the names of the additional keyword arguments of an environment class.

    Valid are its parameters, keys of the configuration, and the keyword-only parameters of the `inner` class that the
    arguments are passed on to. Raises `UnexpectedArgumentError` for another name, with the nearest valid one.
    """
    valid = {field.name for field in dataclasses.fields(BattleConfig)}
    valid |= {
        p.name
        for p in inspect.signature(env_class).parameters.values()
        if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    }
    if inner is not None:
        valid |= {p.name for p in inspect.signature(inner).parameters.values() if p.kind is p.KEYWORD_ONLY}
    for name in arguments:
        if name in valid:
            continue
        meant = next((each for names in _SYNONYMS if name in names for each in names if each in valid), name)
        hint = nearest_name(meant, valid)
        if name == "seed":
            hint = "; it is an argument of reset()"
        if name in POLICY_ROLES["pilot"]:
            hint = "; here all mechs are agents, see BattleEnv and echelon_env.wrappers.TeamVersusPolicy"
        raise UnexpectedArgumentError(
            f"{env_class.__name__}.__init__() got an unexpected keyword argument {name!r}{hint}", name
        )


def make_policy(role: str, policy: PolicyLike, seed: int, config: BattleConfig, num_threads: int = 1) -> Policy:
    """The policy of a role, from the formats that `ControlledBattles` takes. Raises `ConfigError`, naming the role."""
    if isinstance(policy, (str, Mapping, Opponents)):
        chosen = Opponents.parse(policy, role).check_playable(role)
        return opponents.make(chosen, seed, config, num_threads=num_threads)
    if not isinstance(policy, type):
        if isinstance(policy, Policy):
            return policy
        if callable(policy):
            return FunctionPolicy(policy)
    expected = "an opponent's name, weights of several, an object with reset and act, or a function"
    raise ConfigError(f"{role}: expected {expected}, got {policy!r}")
