"""Fills docs/results/performance.md from results: ``python -m benchmarks.page [RESULTS]``.

Without an argument the page and its picture follow from benchmarks/results.json. The sections of a file that is
named take the place of those that are there; of sections that were measured in another run than the rest the page says
when and on which machine.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.goals import table_of_goals
from benchmarks.machine import ROOT, commit_in_words
from benchmarks.picture import picture
from benchmarks.results import TABLES, Results, read_results
from benchmarks.tables import as_markdown, filled
from echelon_env.storage.atomic import write_bytes

PAGE = ROOT / "docs" / "results" / "performance.md"
PICTURE = ROOT / "docs" / "pictures" / "performance.png"
PUBLISHED = ROOT / "benchmarks" / "results.json"
NOT_MEASURED = "Not measured in this run."


def filled_page(text: str, results: Results) -> str:
    """A page whose marked parts are those of the results."""
    return filled(text, "benchmark", lambda name: _part(name, results))


def _part(name: str, results: Results) -> str:
    """What a mark of the page stands for. Raises ValueError for a name of none."""
    if name == "machine":
        return _machine(results)
    if name == "goals":
        return as_markdown(table_of_goals(results))
    if name not in TABLES:
        raise ValueError(f"{PAGE.name}: expected a mark of {', '.join(('machine', 'goals', *TABLES))}, got {name!r}")
    tables = results.sections.get(name, {}).values()
    return "\n\n".join(map(as_markdown, tables)) if tables else NOT_MEASURED


def _machine(results: Results) -> str:
    lines = [f"Medians of {results.rounds} rounds."]
    if results.sections.keys() - results.later.keys():
        lines = [f"{_described(results.machine)}; medians of {results.rounds} rounds."]
    runs: dict[str, list[str]] = {}
    for name, machine in results.later.items():
        runs.setdefault(_described(machine), []).append(name)
    lines += [f"In a run of its own, {' and '.join(names)}: {described}." for described, names in runs.items()]
    return "\n\n".join(lines)


def _described(machine: Mapping[str, Any]) -> str:
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']}; Python {machine['python']}, NumPy "
        f"{machine['numpy']}, Numba {machine['numba']}; {commit_in_words(machine['commit'])}, {machine['date']}; "
        f"load before the run {machine['load']}"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 2 for a file that holds no results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__)
    parser.add_argument("results", type=Path, nargs="?", help="a file that python -m benchmarks has written")
    options = parser.parse_args(arguments)
    try:
        results = read_results(PUBLISHED)
        if options.results is not None:
            results = results.updated(read_results(options.results))
        page = filled_page(PAGE.read_text(encoding="utf-8"), results)
        drawn = picture(results)
        results.write(PUBLISHED)
        write_bytes(PICTURE, drawn)
        write_bytes(PAGE, page.encode())
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
