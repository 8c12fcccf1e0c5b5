"""The command `echelon league report`."""

from __future__ import annotations

import argparse

from echelon_train.cli.league.output import Result
from echelon_train.cli.report import FILE
from echelon_train.league.store.database import reading
from echelon_train.report.league_report import write_league_report
from echelon_train.report.page import check_out


def run_report(args: argparse.Namespace) -> Result:
    """Write the report and print its path."""
    with reading(args.league):  # first, as the file is in its folder by default
        pass
    out = check_out(args.out or args.league / FILE)
    write_league_report(args.league, out, replays=args.replays, retired=args.all)
    size = out.stat().st_size
    return Result({"file": str(out), "bytes": size}, [f"{out}: {size / 1e6:.1f} MB"])
