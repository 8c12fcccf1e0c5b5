"""The values of a run's training state: one record, checked as a whole when it is read."""

from __future__ import annotations

import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stable_baselines3.common.logger import Logger

from echelon_env.config.schema import ConfigError, build, check_fields, measure, to_plain
from echelon_env.networks.weights import CheckpointError
from echelon_train.config.train import CHANGEABLE, TrainConfig
from echelon_train.errors import RunFolderError
from echelon_train.league.learner import LearnerState
from echelon_train.opponents.pool import PoolState
from echelon_train.ppo.training_state import ModelState
from echelon_train.runs.callbacks.battle_totals import TotalsState
from echelon_train.runs.callbacks.clock import ClockState
from echelon_train.runs.callbacks.curriculum import CurriculumState
from echelon_train.runs.callbacks.evaluation import BestEvaluation
from echelon_train.runs.callbacks.every import Every
from echelon_train.runs.callbacks.results import ResultsState
from echelon_train.runs.folder import RUN_FILE


@dataclass(frozen=True)
class Pending:
    """A number that a logger has recorded and not yet written."""

    number: int | float | str = measure("", -math.inf, math.inf)
    """One that is not finite as text."""
    exclude: tuple[str, ...] = ()
    """Outputs that do not get it."""

    def __post_init__(self) -> None:
        if isinstance(self.number, str) and self.number not in ("nan", "inf", "-inf"):
            raise ConfigError(f"pending: expected a number, got {self.number!r}")

    def record(self, logger: Logger, name: str) -> None:
        """Record it again."""
        logger.record(name, float(self.number) if isinstance(self.number, str) else self.number, self.exclude)


@dataclass(frozen=True, kw_only=True)
class RunState:
    """Everything that a run depends on besides its tensors and its league, in a process.

    Parts that hold live objects, such as members of a league, are checked by these objects, see their `restore`.
    """

    config: dict[str, Any]
    """The `TrainConfig`, for a comparison with that of the resumed run."""
    model: ModelState
    clock: ClockState
    curriculum: CurriculumState
    results: ResultsState
    totals: TotalsState | None
    """None in all processes but the first."""
    checkpoints: Every
    evaluations: Every
    films: Every
    best: BestEvaluation
    earlier_maps: tuple[str, ...]
    """Content hashes of the maps of earlier stages."""
    league: LearnerState | None
    opponents: PoolState
    pending: dict[str, Pending]
    """By the name of the metric."""

    def to_dict(self) -> dict[str, Any]:
        """The state as JSON values."""
        return typing.cast("dict[str, Any]", to_plain(self))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunState:
        """The inverse of `to_dict`. Raises CheckpointError for values that are damaged or of another release."""
        try:
            state = typing.cast("RunState", build(cls, values, ""))
            check_fields(state, "")
            if missing := flat(state.to_dict()).keys() - flat(values).keys():
                raise ConfigError(f"keys are missing: {', '.join(sorted(missing)[:4])}")
        except (ConfigError, TypeError) as error:
            reason = str(error).replace("config key", "key", 1)
            raise CheckpointError(f"training state (damaged, or of another release): {reason}") from error
        return state


def pending_metrics(logger: Logger) -> dict[str, Pending]:
    """The recorded numbers that a logger has not written yet."""
    return {
        name: Pending(value if math.isfinite(value) else str(float(value)), tuple(logger.name_to_excluded[name] or ()))
        for name, value in logger.name_to_value.items()
        if isinstance(value, (int, float))
    }


def check_same_run(kept: Mapping[str, Any], config: TrainConfig) -> None:
    """Raise RunFolderError for a setting that differs from the checkpoint's and is not `CHANGEABLE`."""
    then, now = flat(kept), flat(config.to_dict())
    fixed = [name for name in now if name not in CHANGEABLE]
    if not isinstance(config.maps, str):  # a directory may move: the state of the battles names its maps
        fixed.append("maps")
    changed = [name for name in fixed if then.get(name) != now[name]]
    if changed or then.keys() != now.keys():
        name = [*changed, *sorted(then.keys() ^ now.keys())][0]
        raise RunFolderError(
            f"{name} was {then.get(name)!r} when the checkpoint was made, and is {now.get(name)!r} in {RUN_FILE}: "
            "a resumed run keeps its settings"
        )


def flat(plain: Any, name: str = "") -> dict[str, Any]:
    """The values of nested objects and of lists of objects by dotted names."""
    if isinstance(plain, (list, tuple)) and plain and all(isinstance(each, Mapping) for each in plain):
        plain = {str(each.get("name", number)): each for number, each in enumerate(plain)}
    if not isinstance(plain, Mapping) or not plain:
        return {name: list(plain) if isinstance(plain, tuple) else plain}
    parts = [flat(part, f"{name}.{key}" if name else str(key)) for key, part in plain.items()]
    return {key: value for part in parts for key, value in part.items()}
