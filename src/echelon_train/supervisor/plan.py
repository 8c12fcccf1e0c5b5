"""What a league run does: its learners, and the rules for matches, promotion and retirement."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_lowercase
from typing import Any, NamedTuple, get_args

from echelon_env.cli.arguments import parse_settings
from echelon_env.config.schema import ConfigError, build, check_fields, quantity, to_plain
from echelon_env.storage.atomic import write_json
from echelon_env.storage.reading import parse_json, read_regular_file
from echelon_train.config.files import load_run_config
from echelon_train.config.league import RUNS_FOLDER, Role
from echelon_train.config.train import TrainConfig
from echelon_train.errors import RunFolderError

PLAN_FILE = "plan.json"
MAX_BYTES = 1 << 20
MAX_LEARNERS = len(ascii_lowercase)
"""Largest number of learners with one role: each has a letter."""


RESERVED = ("league.path", "league.role", "league.agent", "init", "seed", "steps")
"""Settings of learners that follow from other options."""


class Agent(NamedTuple):
    """A learner: the name of its snapshots and of its run folder, its role, and its number among all learners."""

    name: str
    role: Role
    number: int


@dataclass(frozen=True, kw_only=True)
class LeaguePlan:
    """The settings of a league run. Raises `ConfigError` for values out of range, and for a plan without learners."""

    main: int = quantity(1, "learners", 0, MAX_LEARNERS, help="main agents")
    exploiter: int = quantity(1, "learners", 0, MAX_LEARNERS, help="exploiters of main agents")
    config: str = field(default="league", metadata={"help": "run config of the learners, or a TOML file"})
    settings: tuple[str, ...] = field(default=(), metadata={"help": "further settings of the learners, KEY=VALUE"})
    start: str = field(default="", metadata={"help": "member that new learners start from; empty: random weights"})
    steps: int = quantity(
        0, "decisions", 0, 10**15, help="of main agents, else of exploiters; 0: those of the run config"
    )
    seed: int = quantity(
        0, "", 0, 2**32 - 1 - 2 * MAX_LEARNERS, help="seed of the first learner, from which those of the others follow"
    )
    maps: int = quantity(10, "maps", 1, 1000, help="maps of a match, each from both sides")
    until_rd: float = quantity(75.0, "points", 46, 350, help="rating deviation below which no matches are played")
    k: float = quantity(
        1.0, "deviations", 0, 100, help="deviations between a rating and its conservative score, as in promote"
    )
    active: int = quantity(24, "policies", 1, 10_000, help="policies above which the weakest are retired")
    patience: int = quantity(
        8, "snapshots", 0, 10**6, help="snapshots of main agents without a new champion that end the run; 0: never"
    )

    def __post_init__(self) -> None:
        check_fields(self, "")
        if not self.main + self.exploiter:
            raise ConfigError("expected at least one learner: --main and --exploiter are 0")

    @property
    def agents(self) -> list[Agent]:
        """The learners: ``main``, ``main-b``, ..., ``exploiter``, ... ."""
        return [
            Agent(f"{role}{(number and '-' + ascii_lowercase[number]) or ''}", role, first + number)
            for first, role in zip(itertools.count(step=MAX_LEARNERS), get_args(Role), strict=False)
            for number in range(getattr(self, role))
        ]

    def overrides(self) -> dict[str, str]:
        """The settings of the learners that differ from the run config. Raises `ConfigError` for invalid ones."""
        given = parse_settings(self.settings)
        if reserved := [key for key in given if key in RESERVED]:
            raise ConfigError(f"--set {reserved[0]}: a league run sets it itself", reserved[0])
        return given | ({"steps": str(self.steps)} if self.steps else {})

    def run_config(self, role: Role = "main") -> TrainConfig:
        """The run config of a learner in a league ``league``. Raises `ConfigError`, OSError."""
        return load_run_config(self.config, self.overrides() | {"league.path": "league", "league.role": role})


def runs_folder(league: Path) -> Path:
    """The folder of the runs of a league."""
    return league / RUNS_FOLDER


def read_plan(league: Path) -> LeaguePlan | None:
    """The plan of a league's last run; None before the first. Raises RunFolderError for a damaged one."""
    path = runs_folder(league) / PLAN_FILE
    try:
        plan: LeaguePlan = build(LeaguePlan, parse_json(read_regular_file(path, MAX_BYTES)), "")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise RunFolderError(f"{path}: {error}") from None
    return plan


def write_plan(league: Path, plan: LeaguePlan) -> None:
    """Keep a plan for the next `read_plan`. Raises OSError."""
    write_json(runs_folder(league) / PLAN_FILE, to_plain(plan))


def changed(plan: LeaguePlan, changes: Mapping[str, Any]) -> LeaguePlan:
    """The plan with other values; None changes nothing. Raises `ConfigError`."""
    return dataclasses.replace(plan, **{name: value for name, value in changes.items() if value is not None})
