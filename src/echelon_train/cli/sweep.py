"""Search for settings of a run: many runs with settings that Optuna proposes."""

from __future__ import annotations

import argparse
import dataclasses
import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from echelon_env.cli.arguments import parse_settings, positive
from echelon_env.cli.output import command
from echelon_env.config.schema import ConfigError
from echelon_env.evaluate.tables import WIDTH
from echelon_train.errors import TrainError

if TYPE_CHECKING:
    from echelon_train.runs.sweep import Sweep

EXPECTED_ERRORS = (TrainError,)

_INTERRUPTED = 130  # exit code

_EPILOG = """\
A range between two integers yields integers. Several processes can share one
sweep: run the same command in each. After Ctrl-C or a crash the same command
continues the sweep.

examples:
  echelon sweep quickstart --out runs/sweep --set steps=300_000 \\
    --search ppo.learning_rate=log:1e-4:3e-3 --search ppo.n_epochs=2:6
  echelon sweep duel --out runs/gamma --search ppo.gamma=0.99:0.999 --ray
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    add = parser.add_argument
    add("config", metavar="CONFIG", help="run config, see echelon train")
    add("--out", type=Path, required=True, metavar="FOLDER", help="folder of the sweep, new or to continue")
    add(
        "--search",
        action="append",
        default=[],
        metavar="KEY=SPACE",
        help="key of the run config, and its values: LOW:HIGH, log:LOW:HIGH or A,B,C",
    )
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="key of the run config, for all trials")
    add(
        "--trials",
        type=positive,
        default=20,
        metavar="N",
        help="number of trials, over all processes (default: %(default)s)",
    )
    add("--no-prune", action="store_true", help="finish trials that do worse than most")
    add(
        "--ray",
        nargs="?",
        const="",
        metavar="ADDRESS",
        help="run the trials on the Ray cluster with this address (default: RAY_ADDRESS, else this machine)",
    )
    add(
        "--at-once",
        type=positive,
        metavar="N",
        help="with --ray: trials at a time (default: as many as the cluster has CPUs for)",
    )
    add("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Run trials and print them. Returns 130 after Ctrl-C."""
    overrides = parse_settings(args.set)
    try:
        from echelon_train.runs.sweep import RayTrials, Search, sweep
    except ModuleNotFoundError as error:
        if error.name != "optuna":
            raise
        raise ConfigError('a sweep needs optuna: pip install "echelon-env[train,tune]"') from None

    searches = [Search.parse(text) for text in args.search]
    from echelon_train.console import PrintableConsole

    console = PrintableConsole(stderr=True)
    if args.at_once is not None and args.ray is None:
        raise ConfigError("--at-once: is for trials on Ray, see --ray; without it run the command in several terminals")
    found = sweep(
        args.config,
        overrides,
        searches,
        args.out,
        trials=args.trials,
        prune=not args.no_prune,
        console=console,
        cluster=None if args.ray is None else RayTrials(args.ray or None, at_once=args.at_once),
    )
    print(_document(found) if args.json else "\n".join(_format(found, args)))
    return _INTERRUPTED if found.interrupted else 0


def _document(found: Sweep) -> str:
    trials = [{**dataclasses.asdict(trial), "run": str(trial.run)} for trial in found.trials]
    return json.dumps({"trials": trials, "interrupted": found.interrupted}, indent=2, allow_nan=False)


def _format(found: Sweep, args: argparse.Namespace) -> list[str]:
    lines = ["trial   won %  state     settings"]
    for trial in found.trials:
        rate = "-" if trial.win_rate is None else f"{100 * trial.win_rate:.1f}"
        settings = ", ".join(f"{key}={_short(value)}" for key, value in trial.settings.items())
        lines += textwrap.wrap(
            f"{trial.number:>5}  {rate:>6}  {trial.state:<8}  {settings}",
            WIDTH,
            subsequent_indent=" " * 25,
            break_on_hyphens=False,
            drop_whitespace=True,
        )
        if trial.failure:
            lines += textwrap.wrap(trial.failure, WIDTH, initial_indent=" " * 25, subsequent_indent=" " * 25)
    if found.trials and found.trials[0].state == "complete":
        lines.append(f"Evaluate the best: {command('evaluate', found.trials[0].run)}")
    if found.interrupted:
        lines.append("Interrupted. The same command continues.")
    return lines


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
