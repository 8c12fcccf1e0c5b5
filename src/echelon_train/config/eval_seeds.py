"""The maps of a run's own evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from echelon_env.config.schema import ConfigError
from echelon_env.evaluate.seeds import EVALUATION_SEEDS, MAX_SEEDS, check_seeds, read_seeds


@dataclass(frozen=True)
class EvalSeeds:
    """Seeds of the maps of evaluations, all different, in `EVALUATION_SEEDS`. Raises `ConfigError` for others."""

    seeds: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.seeds) <= MAX_SEEDS:
            raise ConfigError(f"expected 1 to {MAX_SEEDS:,} seeds, got {len(self.seeds):,}")
        try:
            check_seeds(self.seeds, EVALUATION_SEEDS)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        if len(set(self.seeds)) < len(self.seeds):
            raise ConfigError("expected different seeds, got duplicates")

    def __str__(self) -> str:
        return f"{len(self.seeds):,} seeds"

    def plain(self) -> list[int]:
        """The seeds as `parse` takes them, fit for JSON."""
        return list(self.seeds)

    @classmethod
    def parse(cls, value: Any, key: str) -> EvalSeeds:
        """Seeds, or the path of a file of them, see `read_seeds`. Raises `ConfigError`, naming the `key`."""
        if isinstance(value, EvalSeeds):
            return value
        try:
            if isinstance(value, str):
                return cls(read_seeds(value))
            if not isinstance(value, Sequence):
                raise ConfigError(f"expected the path of a file of seeds, or seeds, got {value!r}")
            return cls(tuple(value))
        except ConfigError as error:
            raise ConfigError(f"{key}: {error}", key) from None
