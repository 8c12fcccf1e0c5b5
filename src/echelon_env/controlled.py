"""Battles in which a learner controls some mechs and policies control the rest: the base of single-agent faces."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echelon_env import opponents
from echelon_env.config import BattleConfig
from echelon_env.engine.core import BattleEngine, read_actions
from echelon_env.engine.maps import Maps
from echelon_env.engine.state import BLUE, DRAW, RED
from echelon_env.opponents import Policy
from echelon_env.scenario import ScenarioLike, make_config
from echelon_env.schema import ConfigError, check_integer, nearest_name

Control = Literal["pilot", "team"]
CONTROLS = ("pilot", "team")
Indices = NDArray[np.int64]


class ControlledBattles:
    """B battles with n mechs each in a learner's hands; the arrays it returns are fresh.

    Parameters
    ----------
    scenario
        A scenario's name or file, a `BattleConfig` or its dict.
    num_battles
        Battles B.
    control
        ``"pilot"``: one mech a battle (n = 1), its team-mates scripted; ``"team"``: all mechs of a team.
    opponent
        Name of a scripted level or a policy that plays the other team.
    teammate
        Likewise for the pilot's team-mates.
    pilot
        Index of the pilot's mech within its team's roster.
    side
        The learner's team: 0 (blue) or 1 (red), or (B,) of them; `reset` can change it.
    num_threads
        Threads that share a step.
    maps
        The battles' maps, see `BattleEngine`.
    seed
        Seed of the scripted players.
    **overrides
        Fields of the configuration to change.

    Raises
    ------
    ConfigError
        For an impossible configuration, unknown `control` or `opponent`, or sides whose rosters differ in size.
    """

    def __init__(
        self,
        scenario: ScenarioLike = "battle",
        num_battles: int = 1,
        *,
        control: Control = "team",
        opponent: str | Policy = "novice",
        teammate: str | Policy = "novice",
        pilot: int = 0,
        side: ArrayLike = BLUE,
        num_threads: int = 1,
        maps: Maps = None,
        seed: int = 0,
        **overrides: Any,
    ) -> None:
        if control not in CONTROLS:
            raise ConfigError(f"unknown control {control!r}{nearest_name(str(control), CONTROLS)}")
        config = make_config(scenario, **overrides)
        self.engine = BattleEngine(config, num_battles, num_threads, maps=maps)
        self.config = config
        self.num_battles = num_battles
        self.control = control
        if opponent is teammate and not isinstance(opponent, str):
            raise ConfigError("opponent and teammate are one object; each needs a memory of its own")
        seed = check_integer("seed", seed, 0)
        self._opponent = _make_policy("opponent", opponent, seed, config)
        self._teammate = _make_policy("teammate", teammate, seed + 1, config) if control == "pilot" else None
        self._pilot = check_integer("pilot", pilot, 0)
        self._actions = np.zeros((num_battles, self.engine.num_mechs, self.engine.action_dim), np.float32)
        self._battle = np.arange(num_battles)[:, None]
        self._side = _check_sides(side, num_battles)
        self._own, self._mates, self._enemies = self._share_out(self._side)
        self.num_controlled = self._own.shape[1]

    def reset(
        self,
        seeds: ArrayLike,
        mask: NDArray[np.bool_] | None = None,
        side: ArrayLike | None = None,
        map_seeds: ArrayLike | None = None,
    ) -> NDArray[np.float32]:
        """Begin new battles, see `BattleEngine.reset`; `side` (B,) changes the learner's teams of those that begin.

        Returns the learner's observations of all battles, (B, n, D) float32.
        """
        chosen = np.ones(self.num_battles, np.bool_) if mask is None else mask
        sides = self._side if side is None else np.where(chosen, _check_sides(side, self.num_battles), self._side)
        shares = self._share_out(sides)
        self.engine.reset(seeds, chosen, map_seeds)
        self._side = sides
        self._own, self._mates, self._enemies = shares
        self._opponent.reset(np.repeat(chosen, self._enemies.shape[1]))
        if self._teammate is not None:
            self._teammate.reset(np.repeat(chosen, self._mates.shape[1]))
        return self._of_learner(self.engine.out.observations)

    def step(
        self, actions: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_]]:
        """Take a decision: the learner's actions (B, n, A), everybody else's from their policies.

        Returns the learner's observations (B, n, D) float32, rewards (B, n) float32, terminated and truncated (B, n)
        bool. Raises ValueError for another shape.
        """
        shape = (self.num_battles, self.num_controlled, self.engine.action_dim)
        self._actions[self._battle, self._own] = read_actions(actions, shape, "actions (battles, mechs, action)")
        self._let_act(self._opponent, self._enemies)
        if self._teammate is not None:
            self._let_act(self._teammate, self._mates)
        observations, rewards, terminated, truncated = self.engine.step(self._actions)
        return (
            self._of_learner(observations),
            self._of_learner(rewards),
            self._of_learner(terminated),
            self._of_learner(truncated),
        )

    @property
    def side(self) -> NDArray[np.int64]:
        """(B,) int64: the learner's team in each battle, 0 blue and 1 red."""
        return self._side.copy()

    @property
    def own(self) -> NDArray[np.int64]:
        """(B, n) int64: the engine's rows that the learner controls."""
        return self._own.copy()

    @property
    def alive(self) -> NDArray[np.bool_]:
        """(B, n) bool: the learner's mechs that live."""
        return self._of_learner(self.engine.alive)

    @property
    def battle_over(self) -> NDArray[np.bool_]:
        """(B,) bool: the battles that are over."""
        return self.engine.battle_over

    @property
    def learner_won(self) -> NDArray[np.int8]:
        """(B,) int8: 1 win, 0 draw, -1 loss of the learner's team; valid where `battle_over`."""
        winner = self.engine.winner
        won = np.where(winner == self._side, 1, -1)
        return np.where(winner == DRAW, 0, won).astype(np.int8)

    @property
    def bad_actions(self) -> NDArray[np.int32]:
        """(B, n) int32: non-finite action entries of the learner in the last step."""
        return self._of_learner(self.engine.bad_actions)

    @property
    def reward_components(self) -> NDArray[np.float32]:
        """(B, n, K) float32: the last step's rewards by component."""
        return self._of_learner(self.engine.reward_components)

    def close(self) -> None:
        """Stop the engine's threads."""
        self.engine.close()

    def _of_learner(self, array: NDArray[Any]) -> NDArray[Any]:
        rows: NDArray[Any] = array[self._battle, self._own]
        return rows

    def _let_act(self, policy: Policy, rows: NDArray[np.int64]) -> None:
        if rows.shape[1] == 0:
            return
        observations = self.engine.out.observations[self._battle, rows]
        actions = policy.act(observations.reshape(-1, observations.shape[-1]))
        checked = read_actions(actions, (rows.size, self.engine.action_dim), f"{type(policy).__name__}.act")
        self._actions[self._battle, rows] = checked.reshape(*rows.shape, -1)

    def _share_out(self, side: Indices) -> tuple[Indices, Indices, Indices]:
        """Rows (B, n) of the learner, (B, .) of its team-mates and of its enemies, for its team in each battle."""
        blue, red = np.arange(len(self.config.blue)), len(self.config.blue) + np.arange(len(self.config.red))
        if len(blue) != len(red) and len(np.unique(side)) > 1:
            raise ConfigError(f"side: teams of {len(blue)} and {len(red)} mechs need the same side in every battle")
        team = np.array([(blue, red)[own] for own in side])
        enemies = np.array([(red, blue)[own] for own in side])
        if self.control == "team":
            return team, team[:, :0], enemies
        if self._pilot >= team.shape[1]:
            raise ConfigError(f"pilot: expected a place in a roster of {team.shape[1]}, got {self._pilot}")
        return team[:, self._pilot : self._pilot + 1], np.delete(team, self._pilot, axis=1), enemies


def _make_policy(role: str, policy: str | Policy, seed: int, config: BattleConfig) -> Policy:
    if isinstance(policy, str):
        if policy not in opponents.LEVELS:
            raise ConfigError(f"unknown {role} {policy!r}{nearest_name(policy, opponents.LEVELS)}")
        return opponents.make(policy, seed, config)
    if isinstance(policy, type) or not isinstance(policy, Policy):
        raise ConfigError(f"{role}: expected a level's name or an object with reset and act, got {policy!r}")
    return policy


def _check_sides(side: ArrayLike, count: int) -> NDArray[np.int64]:
    sides = np.asarray(side)
    if sides.shape not in ((), (count,)) or not np.isin(sides, (BLUE, RED)).all():
        raise ConfigError(f"side: expected 0 or 1, or ({count},) of them, got {side!r}")
    return np.broadcast_to(sides, (count,)).astype(np.int64)
