"""Curricula: sequences of scenarios with a promotion rule. `envs.curriculum` has environments that follow them."""

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
from echelon_env.config.schema import ConfigError, build, check_fields, override, quantity, to_plain


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

    def to_dict(self) -> dict[str, Any]:
        """The curriculum as nested dicts, lists and plain values that JSON can hold."""
        return typing.cast("dict[str, Any]", to_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Curriculum:
        """The inverse of `to_dict`. Raises `ConfigError`."""
        return typing.cast("Curriculum", build(cls, data, ""))


CurriculumLike = Curriculum | Mapping[str, Any] | Sequence[ScenarioLike]
"""A curriculum, its dict, or a sequence of scenario names, files, configurations or dicts."""


def make_curriculum(curriculum: CurriculumLike, **overrides: Any) -> Curriculum:
    """Build a curriculum from a sequence of scenarios, a curriculum or its dict, with fields overridden.

    A scenario given as a configuration or its dict has no name and is named after its stage.
    Raises `ConfigError` for unknown scenarios and keys (with the nearest valid name) and for invalid values.

    >>> curriculum = make_curriculum(["duel-open", "duel-cover", "duel"], window=200)
    >>> [scenario.name for scenario in curriculum.scenarios], curriculum.promote
    (['duel-open', 'duel-cover', 'duel'], 0.7)
    """
    if isinstance(curriculum, Mapping):
        made = Curriculum.from_dict(curriculum)
    elif isinstance(curriculum, Curriculum):
        made = curriculum
    elif isinstance(curriculum, Sequence) and not isinstance(curriculum, str):
        made = Curriculum(scenarios=tuple(_name_scenario(stage, given) for stage, given in enumerate(curriculum)))
    else:
        raise ConfigError(f"expected a curriculum, its dict or a sequence of scenarios, got {curriculum!r}")
    return typing.cast("Curriculum", override(made, overrides, "")) if overrides else made


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


class Progress:
    """The progress of a learner in a curriculum.

    Parameters
    ----------
    curriculum
        The stages and the rule.
    """

    def __init__(self, curriculum: Curriculum) -> None:
        self.curriculum = curriculum
        self._stage = 0
        self._battles = 0
        self._won: deque[bool] = deque(maxlen=curriculum.window)

    @property
    def stage(self) -> int:
        """Index of the current stage."""
        return self._stage

    @property
    def scenario(self) -> Scenario:
        """The scenario of the current stage."""
        return self.curriculum.scenarios[self._stage]

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

    def state_dict(self) -> dict[str, Any]:
        """The progress as plain values that JSON can hold."""
        return {"stage": self._stage, "battles": self._battles, "won": list(self._won)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a `state_dict`. Raises `ConfigError`, with nothing changed, if it does not fit the curriculum."""
        if not isinstance(state, Mapping) or state.keys() != self.state_dict().keys():
            raise ConfigError(f"progress: expected a mapping with the keys {list(self.state_dict())}, got {state!r}")
        stage, battles, won = state["stage"], state["battles"], state["won"]
        last, window = len(self.curriculum.scenarios) - 1, self.curriculum.window
        if type(stage) is not int or not 0 <= stage <= last:
            raise ConfigError(f"progress: stage: expected an integer from 0 to {last}, got {stage!r}")
        if not isinstance(won, list) or not all(isinstance(one, bool) for one in won):
            raise ConfigError(f"progress: won: expected a list of booleans, got {won!r}")
        if type(battles) is not int or len(won) != min(battles, window):
            raise ConfigError(
                f"progress: {len(won)} outcomes cannot be what a window of {window} keeps of {battles!r} battles"
            )
        self._stage, self._battles = stage, battles
        self._won = deque(won, maxlen=window)
