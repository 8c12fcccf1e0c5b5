"""What a benchmark found: the machine, and the tables of its sections, as one JSON file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.scaling import RATE
from benchmarks.tables import Table, read_document
from echelon_env.storage.atomic import write_json

SCHEMA = 2
MACHINE = ("processor", "cores", "system", "python", "numpy", "numba", "commit", "date", "load")
TABLES = {
    "apis": ("novices", "random"), "scaling": ("batch", "threads"), "resets": ("costs",),
    "startup": ("first step", "memory"), "training": ("speed", "memory"),
}  # fmt: skip
"""Tables that a section has, in their order."""


@dataclass(frozen=True)
class Results:
    """Tables by section and name."""

    machine: dict[str, Any]
    rounds: int
    sections: dict[str, dict[str, Table]]
    later: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Of sections that were measured again in a run of their own: the machine, as it was then."""

    def updated(self, run: Results) -> Results:
        """These with the sections of another run in place of their own."""
        if all(section in run.sections for section in TABLES):
            return run
        sections = self.sections | run.sections
        later = self.later | dict.fromkeys(run.sections, run.machine)
        return Results(self.machine, self.rounds, {name: sections[name] for name in TABLES if name in sections}, later)

    def number(self, section: str, table: str, row: str, column: str) -> float | None:
        """A measured number; None where it was not measured."""
        try:
            cell = self.sections[section][table].cell(row, column)
        except KeyError:
            return None
        return None if isinstance(cell, str) else cell

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all. Raises OSError."""
        write_json(
            path,
            {
                "schema": SCHEMA, "machine": self.machine, "rounds": self.rounds, "later": self.later,
                "sections": {
                    section: [table.to_dict() for table in tables.values()] for section, tables in self.sections.items()
                },
            },
        )  # fmt: skip


def read_results(path: Path) -> Results:
    """The results of a file. Raises ValueError, naming the file, when it holds none."""
    return read_document(path, SCHEMA, "results of a benchmark", _results)


def _results(data: Any) -> Results:
    sections = {
        str(name): {table.name: table for table in map(Table.from_dict, tables)}
        for name, tables in data["sections"].items()
    }
    later = {str(name): dict(machine) for name, machine in data["later"].items()}
    results = Results(dict(data["machine"]), int(data["rounds"]), sections, later)
    _check(results)
    return results


def _check(results: Results) -> None:
    """Raise ValueError unless the machine is described and every section has its tables."""
    for machine in (results.machine, *results.later.values()):
        missing = [key for key in MACHINE if key not in machine]
        if missing:
            raise ValueError(f"machine: expected {', '.join(MACHINE)}; missing: {', '.join(missing)}")
    for section, tables in results.sections.items():
        if section not in TABLES or tuple(tables) != TABLES[section]:
            expected = ", ".join(TABLES.get(section, ())) or f"none but {', '.join(TABLES)}"
            raise ValueError(f"section {section!r}: expected {expected}, got {', '.join(tables) or 'no tables'}")
    if "scaling" in results.sections and RATE not in results.sections["scaling"]["batch"].rows:
        raise ValueError(f"table 'batch': expected a row {RATE!r}")
