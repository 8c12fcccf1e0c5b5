"""The benchmark's command: ``python -m benchmarks --help``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import platformdirs

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # before NumPy is imported: one core is measured

from benchmarks import machine, regression  # noqa: E402
from benchmarks.faces import faces  # noqa: E402
from benchmarks.floors import floors  # noqa: E402
from benchmarks.goals import table_of_goals  # noqa: E402
from benchmarks.peers.section import peers  # noqa: E402
from benchmarks.phases import phases  # noqa: E402
from benchmarks.picture import PANELS, save_picture  # noqa: E402
from benchmarks.resets import resets  # noqa: E402
from benchmarks.results import Results  # noqa: E402
from benchmarks.scaling import scaling  # noqa: E402
from benchmarks.startup import startup  # noqa: E402
from benchmarks.tables import Table, as_text  # noqa: E402
from benchmarks.timing import Effort, tell  # noqa: E402
from echelon_env.atomic import free_path, new_folder  # noqa: E402

SECTIONS: dict[str, Callable[[Effort], list[Table]]] = {
    "faces": faces, "phases": phases, "floors": floors, "scaling": scaling, "resets": resets, "startup": startup,
    "peers": peers,
}  # fmt: skip
QUICK = tuple(name for name in SECTIONS if name != "peers")
DECISIONS = 480
SLOW, FAILED = 1, 2


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 where the check finds something slower, 2 for what cannot be done."""
    options = _parser().parse_args(arguments)
    try:
        if options.update_baseline:
            regression.update_baseline()
            print(f"wrote {regression.BASELINE}")
        elif options.check:
            table, good = regression.check()
            _show(table)
            return 0 if good else SLOW
        else:
            _measure(options)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure how fast Echelon is.")
    add = parser.add_argument
    add("--quick", action="store_true", help="a minute or two: fewer sizes and rounds, no peers, no cold cache")
    add("--sections", nargs="+", choices=SECTIONS, metavar="SECTION", help=f"of {', '.join(SECTIONS)} (default: all)")
    add("--out", type=Path, help="a new folder for results.json and results.png (default: runs/benchmark)")
    add(
        "--peers", type=Path, metavar="DIR", default=Path(platformdirs.user_cache_dir("echelon_env")) / "peers",
        help="where the peers' virtual environments are kept, 3 GB (default: %(default)s)",
    )  # fmt: skip
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true", help="compare with benchmarks/baseline.json; 1 if slower")
    mode.add_argument("--update-baseline", action="store_true", help="write benchmarks/baseline.json anew")
    return parser


def _measure(options: argparse.Namespace) -> None:
    """Run sections, print their tables, and write results and picture into a new folder."""
    effort = Effort(options.quick, 3 if options.quick else 5, DECISIONS, options.peers)
    described = machine.describe()
    folder = options.out or free_path(Path("runs/benchmark"))
    print(" | ".join(f"{key} {value}" for key, value in described.items()), flush=True)
    found: dict[str, dict[str, Table]] = {}
    with new_folder(folder) as temporary:
        for name in options.sections or (QUICK if options.quick else SECTIONS):
            start = time.perf_counter()
            tables = SECTIONS[name](effort)
            tell(f"{name}: {time.perf_counter() - start:.0f} s")
            found[name] = {table.name: table for table in tables}
            for table in tables:
                _show(table)
        results = Results(described, effort.rounds, found)
        _show(table_of_goals(results))
        results.write(temporary / "results.json")
        if PANELS.keys() & found.keys():
            save_picture(temporary / "results.png", results)
    print(f"\nwrote {', '.join(str(path) for path in sorted(folder.iterdir()))}")


def _show(table: Table) -> None:
    print(f"\n{as_text(table)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
