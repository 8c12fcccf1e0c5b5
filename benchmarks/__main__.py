"""The benchmark's command: ``python -m benchmarks --help``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import machine, regression
from benchmarks.apis import apis
from benchmarks.goals import table_of_goals
from benchmarks.picture import PANELS, picture
from benchmarks.resets import resets
from benchmarks.results import Results
from benchmarks.scaling import scaling
from benchmarks.startup import startup
from benchmarks.tables import Table, as_text
from benchmarks.timing import Effort, tell
from benchmarks.training import training
from echelon_env.storage.atomic import check_new_folder, free_path, write_bytes

SECTIONS: dict[str, Callable[[Effort], list[Table]]] = {
    "apis": apis, "scaling": scaling, "resets": resets, "startup": startup, "training": training,
}  # fmt: skip
DECISIONS = 480
SLOW, FAILED, INTERRUPTED = 1, 2, 130


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 where the check finds something slower, 2 for what cannot be done, 130 after Ctrl-C."""
    options = _options(arguments)
    try:
        if options.update_baseline:
            regression.update_baseline()
            print(f"wrote {regression.BASELINE}")
        elif options.check:
            return _check()
        else:
            _measure(options)
    except (OSError, ValueError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure how fast Echelon is.")
    add = parser.add_argument
    add("--quick", action="store_true", help="a few minutes: fewer sizes and rounds, no compiling")
    add("--sections", nargs="+", choices=SECTIONS, metavar="SECTION", help=f"of {', '.join(SECTIONS)} (default: all)")
    add("--out", type=Path, help="a new folder for results.json and results.png (default: runs/benchmark)")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true", help="compare with benchmarks/baseline.json; 1 if 1.5 x slower")
    mode.add_argument(
        "--update-baseline", action="store_true", help="measure this processor in benchmarks/baseline.json again"
    )
    options = parser.parse_args(arguments)
    given = [f"--{name}" for name in ("quick", "sections", "out") if getattr(options, name)]
    if given and (options.check or options.update_baseline):
        parser.error(f"{', '.join(given)}: not allowed with --check or --update-baseline")
    return options


def _check() -> int:
    found = regression.check()
    if found is None:
        print(f"No check: there is no baseline of this processor, {machine.processor()}.")
        return 0
    table, good = found
    _show(table)
    return 0 if good else SLOW


def _measure(options: argparse.Namespace) -> None:
    """Run sections, print their tables, and write results and picture into a new folder.

    What was measured is written when a later section fails, too.
    """
    effort = Effort(options.quick, 3 if options.quick else 5, DECISIONS)
    described = machine.describe()
    folder = options.out or free_path(Path("runs/benchmark"))
    print(" | ".join(f"{key} {value}" for key, value in described.items()), flush=True)
    found: dict[str, dict[str, Table]] = {}
    check_new_folder(folder)
    try:
        for name in options.sections or SECTIONS:
            start = time.perf_counter()
            tables = SECTIONS[name](effort)
            tell(f"{name}: {time.perf_counter() - start:.0f} s")
            found[name] = {table.name: table for table in tables}
            for table in tables:
                _show(table)
    finally:
        if found:
            _write(folder, Results(described, effort.rounds, found))


def _write(folder: Path, results: Results) -> None:
    """Print the goals; write the results and, if it shows any of them, the picture."""
    _show(table_of_goals(results))
    folder.mkdir(parents=True, exist_ok=True)
    results.write(folder / "results.json")
    if PANELS.keys() & results.sections.keys():
        write_bytes(folder / "results.png", picture(results))
    print(f"\nwrote {', '.join(str(path) for path in sorted(folder.iterdir()))}")


def _show(table: Table) -> None:
    print(f"\n{as_text(table)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
