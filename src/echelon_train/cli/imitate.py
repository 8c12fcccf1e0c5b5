"""Imitate a scripted level or a policy, as a start for training."""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from echelon_env.cli.arguments import CommandParser
from echelon_env.cli.output import command
from echelon_train.cli import train
from echelon_train.config.files import load_run_config, run_config_names
from echelon_train.errors import TrainError

if TYPE_CHECKING:
    from echelon_train.runs.run import TrainResult

EXPECTED_ERRORS = (TrainError,)
REMOVED_OPTIONS = train.REMOVED_OPTIONS

_CONFIG = "imitate"

ENOUGH = 0.25
"""Share of the run config's decisions below which a run warns."""

_EPILOG = """\
The learner plays a growing share of the battles (DAgger), while the teacher
labels every observation. The result is a run like any other: it is evaluated,
and continued by echelon train --resume.

examples:
  echelon imitate
  echelon imitate duel --teacher veteran --steps 1_000_000
  echelon train duel --init runs/imitate-duel
"""


def add_arguments(parser: CommandParser) -> None:
    """Declare the command's options, one for every setting of a run."""
    parser.usage = "echelon imitate [SCENARIO] [options]"
    parser.formatter_class = train.FORMATTER
    parser.epilog = _EPILOG
    parser.allow_abbrev = False
    rare = parser.add_full_help(_EPILOG)
    parser.add_argument("scenario", nargs="?", metavar="SCENARIO", help="scenario to play (default: skirmish)")
    train.add_run_options(parser, f"{train.RUNS}/{_CONFIG}-SCENARIO")
    rare += train.add_settings(parser, load_run_config(_CONFIG), (*train.COMMON, "teacher"))


def run(args: argparse.Namespace) -> int:
    """Train and print the path of the checkpoint. Returns 130 after Ctrl-C."""
    overrides = train.overrides_of(args)
    if args.scenario is not None:
        overrides["scenario"] = args.scenario
    config = load_run_config(_CONFIG, overrides)
    train.check_league(config, overrides)
    scenarios = train.scenario_names(overrides) or ["skirmish"]
    name = "-".join(Path(each).stem for each in scenarios)
    following = ["skirmish", *itertools.chain.from_iterable(("--scenario", each) for each in scenarios)]
    if name in run_config_names():
        following = [name]
    short = _too_short(config.steps)
    if short:
        print(short, file=sys.stderr)

    def more(result: TrainResult, out: Path) -> list[str]:
        ended_early = _too_short(result.steps) if result.done and not short else ""  # by a limit of time or games
        return [f"Start from it: {command('train', *following, '--init', out)}", *filter(None, [ended_early])]

    return train.train_and_report(config, args.out, f"{_CONFIG}-{name}", more)


def _too_short(steps: int) -> str:
    """A warning if a run of so many decisions is a fraction of what the settings are for; else empty."""
    expected = load_run_config(_CONFIG).steps
    if steps >= ENOUGH * expected:
        return ""
    return (
        f"Warning: {steps:,} decisions are {100 * steps / expected:.2g} % of the {expected:,} that the settings of "
        f"{_CONFIG} are for: the learner plays alone before it has learnt much, and stays weak"
    )
