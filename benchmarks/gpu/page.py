"""Fills docs/results/gpu.md from the file of results."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from benchmarks.gpu.results import PARTS, Entry, Run, last_of_each, read
from benchmarks.gpu.setting import TOOK
from benchmarks.gpu.speed import IDLE
from benchmarks.machine import ROOT, commit_in_words
from benchmarks.tables import Table, as_markdown, filled
from echelon_env.storage.atomic import write_bytes

PAGE = ROOT / "docs" / "results" / "gpu.md"
PUBLISHED = ROOT / "benchmarks" / "gpu.json"
UNTESTED = "**Not measured yet.** No line of this has run on a GPU."
TITLES = {
    "speed": "The training loop",
    "opponents": "Opponents and matches",
    "engine": "The engine on the GPU",
    "processes": "Processes that share the GPU",
    "gpus": "A GPU for each process",
    "learning": "The same run on the GPU and on the CPU",
}


def write_page(results: Path = PUBLISHED) -> None:
    """Write the page from a file of results. Raises ValueError for a file that holds none, and OSError."""
    runs = read(results) if results.exists() else []
    write_bytes(PAGE, filled_page(PAGE.read_text(encoding="utf-8"), runs).encode())


def filled_page(text: str, runs: list[Run]) -> str:
    """A page whose marked parts show the runs that were measured."""
    return filled(text, "gpu", lambda name: shown_part(name, runs))


def shown_part(name: str, runs: list[Run]) -> str:
    """The last measured run of a part. Raises ValueError for a name of none."""
    if name not in PARTS:
        raise ValueError(f"{PAGE.name}: expected a mark of {', '.join(PARTS)}, got {name!r}")
    found = last_of_each(runs)
    return shown_run(found[name]) if name in found else UNTESTED


def shown_run(run: Run) -> str:
    """A run as tables in Markdown: one for all entries with the same numbers, then the failures, then the machine.

    Shares of an iteration have tables of their own.
    """
    by_columns: dict[tuple[str, ...], list[Entry]] = {}
    for entry in run.entries:
        shown = [name for name, value in entry.numbers.items() if not isinstance(value, list) and name != TOOK]
        shares = [name for name in shown if run.part == "speed" and name.endswith(", %") and name != IDLE]
        for columns in ([name for name in shown if name not in shares], [name for name in shown if name in shares]):
            if columns and not entry.error:
                by_columns.setdefault(tuple(columns), []).append(entry)
    tables = [
        as_markdown(
            Table(run.part, TITLES[run.part], "", columns, {_plain(each.name): _row(each, columns) for each in kept})
        )
        for columns, kept in by_columns.items()
    ]
    failures = [f"- {_plain(each.name)}: {_plain(each.error)}" for each in run.entries if each.error]
    return "\n\n".join([*tables, *(["\n".join(failures)] if failures else []), _machine(run.machine)])


def _row(entry: Entry, columns: tuple[str, ...]) -> tuple[float | str, ...]:
    return tuple(_cell(entry.numbers[name]) for name in columns)


def _cell(number: float) -> float | str:
    if isinstance(number, int):
        return f"{number:,}"
    return f"{number:.1e}" if 0 < abs(number) < 0.01 else number


def _machine(machine: dict[str, Any]) -> str:
    return _plain(
        f"{machine['gpu']} ({machine['gpu_memory']} GiB), {machine['processor']}, {machine['cores']} cores; torch "
        f"{machine['torch']}, CUDA {machine['cuda']}; {commit_in_words(machine['commit'])}, {machine['date']}."
    )


def _plain(text: str) -> str:
    """A text without characters that mean something in Markdown or HTML."""
    return re.sub(r"[<>|`*_\[\]\n]", " ", text)
