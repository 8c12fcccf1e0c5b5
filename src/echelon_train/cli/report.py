"""Write a run's results as one HTML file, or compare several runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from echelon_env.cli.arguments import non_negative
from echelon_env.cli.output import command
from echelon_env.config.schema import ConfigError
from echelon_train.errors import TrainError

EXPECTED_ERRORS = (TrainError,)

FILE = "report.html"
_EPILOG = """\
The file has curves, tables, heat maps and replays, and loads nothing. Runs
that differ in their seed only are summarised, with intervals over the seeds.

examples:
  echelon report runs/duel
  echelon report runs/duel-5                        # of train --seeds 5
  echelon report runs/a runs/b --out comparison.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    add = parser.add_argument
    add("runs", nargs="+", type=Path, metavar="RUN", help="folder of a run, or of an experiment of several seeds")
    add_report_options(parser, f"{FILE} in the folder, of several in this one", "", 2)


def add_report_options(parser: argparse.ArgumentParser, where: str, of: str, replays: int) -> None:
    """Declare the options of a report; `where` names the default of its file, `of` what the replays are of."""
    add = parser.add_argument
    add("--out", type=Path, metavar="FILE", help=f"HTML file; an earlier report is replaced (default: {where})")
    add(
        "--replays",
        type=non_negative,
        default=replays,
        metavar="N",
        help=f"largest number of replays{of}, about 0.25 MB each (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Write the report and print its path."""
    from echelon_train.report import write_comparison, write_run_report
    from echelon_train.report.page import check_out
    from echelon_train.runs.folder import SEEDS_FILE

    alone = len(args.runs) == 1 and not (args.runs[0] / SEEDS_FILE).is_file()
    for path in args.runs:
        if (path / "league.db").is_file():
            raise ConfigError(f"{path} is a league: {command('league', 'report', path)}")
    out = check_out(args.out or (args.runs[0] / FILE if len(args.runs) == 1 and args.runs[0].is_dir() else Path(FILE)))
    if alone:
        write_run_report(args.runs[0], out, replays=args.replays)
    else:
        write_comparison(args.runs, out, replays=args.replays)
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB")
    return 0
