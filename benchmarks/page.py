"""Fills docs/performance.md from results: ``python -m benchmarks.page [RESULTS]``.

Without an argument the page and its picture are made anew from benchmarks/results.json, which a file that is named
replaces. A file without all sections is refused unless `--partial` is given: the page says of the others that they
were not measured.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from benchmarks.floors import phases_beside_floors
from benchmarks.goals import table_of_goals
from benchmarks.machine import ROOT, commit_in_words
from benchmarks.picture import picture
from benchmarks.results import TABLES, Results, read_results
from benchmarks.tables import Table, as_markdown
from echelon_env.atomic import write_bytes

PAGE = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "pictures" / "performance.png"
PUBLISHED = ROOT / "benchmarks" / "results.json"
MARKED = re.compile(r"(<!-- benchmark: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
NOT_MEASURED = "Not measured in this run."


def filled(text: str, results: Results) -> str:
    """A page whose marked parts are those of the results.

    Raises ValueError for a mark that names no part.
    """

    def part(match: re.Match[str]) -> str:
        return f"{match[1]}{_part(match[2], results)}\n{match[3]}"

    return MARKED.sub(part, text)


def _part(name: str, results: Results) -> str:
    if name == "machine":
        return _machine(results)
    if name == "goals":
        return as_markdown(table_of_goals(results))
    if name == "phases" and "phases" in results.sections:
        return as_markdown(phases_beside_floors(results))
    if name not in TABLES:
        raise ValueError(f"{PAGE.name}: expected a mark of {', '.join(('machine', 'goals', *TABLES))}, got {name!r}")
    tables: list[Table] = list(results.sections.get(name, {}).values())
    return "\n\n".join(map(as_markdown, tables)) if tables else NOT_MEASURED


def _machine(results: Results) -> str:
    named = results.machine
    return (
        f"{named['processor']}, {named['cores']} cores, {named['system']}; Python {named['python']}, NumPy "
        f"{named['numpy']}, Numba {named['numba']}; {commit_in_words(named['commit'])}, {named['date']}; "
        f"load before the run {named['load']}; medians of {results.rounds} rounds."
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 2 for a file that holds no results, or only some."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__)
    parser.add_argument("results", type=Path, nargs="?", default=PUBLISHED)
    parser.add_argument("--partial", action="store_true", help="publish results that lack sections")
    options = parser.parse_args(arguments)
    try:
        results = read_results(options.results)
        missing = [section for section in TABLES if section not in results.sections]
        if missing and not options.partial:
            raise ValueError(f"{options.results} lacks {', '.join(missing)}; --partial publishes it all the same")
        page, drawn = filled(PAGE.read_text(encoding="utf-8"), results), picture(results)
        results.write(PUBLISHED)
        write_bytes(PICTURE, drawn)
        write_bytes(PAGE, page.encode())
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
