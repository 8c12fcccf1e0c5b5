"""Tables of numbers: what every section of the benchmark returns, and how they are printed."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

WIDTH = 80
Cell = float | str | None
Parsed = TypeVar("Parsed")


@dataclass(frozen=True)
class Table:
    """Numbers by row and column; None where a row has no such number."""

    name: str
    """What the results are looked up by, once in its section."""
    title: str
    unit: str
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[Cell, ...]]
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        for row, cells in self.rows.items():
            if len(cells) != len(self.columns):
                raise ValueError(
                    f"table {self.name!r}, row {row!r}: expected {len(self.columns)} cells, got {len(cells)}"
                )

    def to_dict(self) -> dict[str, Any]:
        """The table fit for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Table:
        """The inverse of `to_dict`, of measured numbers.

        Raises KeyError, TypeError, AttributeError or ValueError for what is none.
        """
        name, title, unit = (str(data[key]) for key in ("name", "title", "unit"))
        columns, notes = tuple(map(str, data["columns"])), tuple(map(str, data["notes"]))
        if not columns:
            raise ValueError(f"table {name!r}: expected columns, got none")
        rows = {row: tuple(cells) for row, cells in data["rows"].items()}
        for row, cells in rows.items():
            for cell in cells:
                if not (cell is None or (type(cell) in (int, float) and math.isfinite(cell))):
                    raise ValueError(f"table {name!r}, row {row!r}: expected finite numbers, got {cell!r}")
        return cls(name, title, unit, columns, rows, notes)

    def cell(self, row: str, column: str) -> Cell:
        """A number. Raises KeyError where there is no such row or column."""
        if column not in self.columns:
            raise KeyError(column)
        return self.rows[row][self.columns.index(column)]


def read_document(path: Path, schema: int, what: str, parse: Callable[[Any], Parsed]) -> Parsed:
    """What a JSON file of a schema holds. Raises ValueError, naming the file, when it holds something else."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["schema"] != schema:
            raise ValueError(f"expected schema {schema}, got {data['schema']}")
        return parse(data)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} holds no {what}: {error!r}") from None


def by_pairs(
    name: str, title: str, unit: str, cells: Mapping[tuple[str, str], float], notes: Iterable[str] = ()
) -> Table:
    """A table from numbers by (row, column), rows and columns in the order in which they first come."""
    columns = tuple(dict.fromkeys(column for _, column in cells))
    rows = {row: tuple(cells.get((row, column)) for column in columns) for row, _ in cells}
    return Table(name, title, unit, columns, rows, tuple(notes))


def number(value: Cell) -> str:
    """A number with three or four figures, thousands apart; "-" for none."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    magnitude = abs(value)
    if magnitude >= 1000:
        step = 10 ** max(0, len(str(int(magnitude))) - 3)
        return f"{round(value / step) * step:,.0f}"
    return f"{value:.0f}" if magnitude >= 100 else f"{value:.1f}" if magnitude >= 10 else f"{value:.2f}"


def as_text(table: Table) -> str:
    """The table in at most 80 columns; labels that do not fit are cut."""
    cells = {row: [number(value) for value in values] for row, values in table.rows.items()}
    widths = [
        max(len(column), *(len(values[i]) for values in cells.values())) + 2 for i, column in enumerate(table.columns)
    ]
    label = max(8, min(max(map(len, cells), default=0), WIDTH - sum(widths)))
    head = " " * label + "".join(f"{column:>{width}}" for column, width in zip(table.columns, widths, strict=True))
    lines = [f"{table.title} [{table.unit}]", head]
    for row, values in cells.items():
        shown = row if len(row) <= label else row[: label - 1] + "."
        lines.append(
            f"{shown:<{label}}" + "".join(f"{value:>{width}}" for value, width in zip(values, widths, strict=True))
        )
    return "\n".join(lines)


def filled(text: str, kind: str, part: Callable[[str], str]) -> str:
    """A page whose parts, from `<!-- kind: name -->` to `<!-- end -->`, are what the function returns for the name."""
    marked = re.compile(rf"(<!-- {kind}: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
    return marked.sub(lambda match: f"{match[1]}{part(match[2])}\n{match[3]}", text)


def as_markdown(table: Table) -> str:
    """The table as Markdown, with its notes below it."""
    head = f"| {table.unit} | {' | '.join(table.columns)} |"
    lines = [f"**{table.title}**", "", head, "|---" * (len(table.columns) + 1) + "|"]
    lines += [f"| {row} | {' | '.join(map(number, values))} |" for row, values in table.rows.items()]
    return "\n".join([*lines, *(f"\n{note}" for note in table.notes)])
