"""Curricula: sequences of scenarios with a promotion rule."""

from __future__ import annotations

import os
import typing
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from echelon_env.config.opponent import Opponents
from echelon_env.config.scenario import Scenario, ScenarioLike, load_scenario, make_config
from echelon_env.config.schema import ConfigError, check_fields, override, quantity


@dataclass(frozen=True, kw_only=True)
class Curriculum:
    """Scenarios from easy to hard (the stages), and a rule that moves the learner between them.

    The rule uses the win rate over the last `window` battles of the current stage, once that many have been played. A
    win rate of at least `promote` leads to the next stage, and one of at most `demote` to the previous stage. A new
    stage starts without battles. The gap between the two rates prevents oscillation. A draw is no win. There is no
    promotion from the last stage and no demotion from the first. `make_curriculum` builds a curriculum from scenario
    names. Raises `ConfigError` for invalid values.
    """

    scenarios: tuple[Scenario, ...]  # the stages, from easy to hard
    opponents: tuple[Opponents, ...] = ()  # of the stages; none: the same in all of them
    window: int = quantity(100, "battles", 1, 100_000)  # of a stage that the win rate counts
    promote: float = quantity(0.7, "win rate", 0, 1)  # that leads to the next stage
    demote: float = quantity(0.3, "win rate", -1, 1)  # below 0: never

    def __post_init__(self) -> None:
        check_fields(self, "")
        if not self.scenarios:
            raise ConfigError("config key 'scenarios': expected at least one scenario, got none", "scenarios")
        if len(self.opponents) not in (0, len(self.scenarios)):
            raise ConfigError(
                f"config key 'opponents': expected one for each of {len(self.scenarios)} scenarios, "
                f"got {len(self.opponents)}",
                "opponents",
            )
        if self.demote >= self.promote:
            raise ConfigError(
                f"demote: expected a win rate below promote ({self.promote}), got {self.demote}", "demote", "promote"
            )


def make_curriculum(scenarios: Sequence[ScenarioLike], **rule: Any) -> Curriculum:
    """Build a curriculum from scenarios and further fields of it.

    A scenario given as a configuration or its dict has no name and is named after its stage.
    Raises `ConfigError` for unknown scenarios and keys (with the nearest valid name) and for invalid values.

    >>> curriculum = make_curriculum(["duel-open", "duel-cover", "duel"], window=200)
    >>> [scenario.name for scenario in curriculum.scenarios], curriculum.promote
    (['duel-open', 'duel-cover', 'duel'], 0.7)
    """
    if isinstance(scenarios, (str, Mapping)) or not isinstance(scenarios, Sequence):
        raise ConfigError(f"expected a sequence of scenarios, got {scenarios!r}")
    made = Curriculum(scenarios=tuple(_name_scenario(stage, given) for stage, given in enumerate(scenarios)))
    return typing.cast("Curriculum", override(made, rule, "")) if rule else made


def _name_scenario(stage: int, given: ScenarioLike) -> Scenario:
    if isinstance(given, (str, os.PathLike)):
        return load_scenario(given)
    return Scenario(f"stage {stage}", "", make_config(given))


@dataclass(frozen=True)
class Move:
    """A change of stage and its cause."""

    stage: int  # index of the new stage
    win_rate: float  # over the last `window` battles of the old stage
    battles: int  # in the old stage


@dataclass(frozen=True)
class ProgressState:
    """Everything that a `Progress` depends on besides its curriculum."""

    stage: int = 0
    battles: int = 0
    won: tuple[bool, ...] = ()  # of the last battles


class Progress:
    """The progress of a learner in a curriculum.

    Parameters
    ----------
    curriculum
        The stages and the rule.
    state
        The `state` of another one to continue from. Raises `ConfigError` if it does not fit the curriculum.
    """

    def __init__(self, curriculum: Curriculum, state: ProgressState | None = None) -> None:
        state = state or ProgressState()
        check_fields(state, "progress.")
        if state.stage >= len(curriculum.scenarios) or len(state.won) != min(state.battles, curriculum.window):
            fitting = f"one of {len(curriculum.scenarios)} stages, and the last {curriculum.window} battles"
            raise ConfigError(f"progress: expected {fitting}, got {state}")
        self.curriculum = curriculum
        self._stage, self._battles = state.stage, state.battles
        self._won = deque(state.won, maxlen=curriculum.window)

    @property
    def stage(self) -> int:
        """Index of the current stage."""
        return self._stage

    @property
    def battles(self) -> int:
        """Number of battles recorded in the current stage."""
        return self._battles

    @property
    def win_rate(self) -> float | None:
        """Share of wins in the last `window` battles of the current stage; None before the first."""
        return self._won.count(True) / len(self._won) if self._won else None

    def record(self, won: bool) -> Move | None:
        """Record a battle of the current stage, and change the stage if the rule says so.

        Returns the move, or None. Raises TypeError if `won` is not a boolean, as an outcome of -1 would be truthy.
        """
        if not isinstance(won, (bool, np.bool_)):
            raise TypeError(f"won: expected a boolean, got {won!r}")
        self._won.append(bool(won))
        self._battles += 1
        win_rate = self.win_rate
        if win_rate is None or len(self._won) < self.curriculum.window:
            return None
        if win_rate >= self.curriculum.promote and self._stage + 1 < len(self.curriculum.scenarios):
            move = Move(self._stage + 1, win_rate, self._battles)
        elif win_rate <= self.curriculum.demote and self._stage > 0:
            move = Move(self._stage - 1, win_rate, self._battles)
        else:
            return None
        self._stage = move.stage
        self._battles = 0
        self._won.clear()
        return move

    @property
    def state(self) -> ProgressState:
        """The progress, from which another one can continue."""
        return ProgressState(self._stage, self._battles, tuple(self._won))
