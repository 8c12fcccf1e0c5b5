"""Leaderboards as text of `WIDTH` columns, and as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from echelon_env.evaluate.tables import WIDTH, format_share, percent, plural, shorten

_HASH = 12  # number of shown digits of a hash
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~&])")  # in a line of Markdown, not at its start


@dataclass(frozen=True)
class _Column:
    head: str
    width: int  # of the text, including a gap
    cells: Sequence[str]


@dataclass(frozen=True)
class _Table:
    title: str
    columns: Sequence[_Column]  # the first is aligned to the left, and named again when the others do not fit on a line
    links: Sequence[str] = ()  # in Markdown, of the cells of the first column; "" for none
    authors: Sequence[str] = ()  # in Markdown, after these cells


def format_leaderboard(leaderboard: Mapping[str, Any]) -> str:
    """The tables of `make_leaderboard` as lines of at most `WIDTH` characters."""
    sections = []
    for board in leaderboard["boards"]:
        lines = [f"{shorten(line, WIDTH)}" for line in _heading(board)]
        sections.append("\n".join([*lines, *_notes(board)]))
        sections += [_as_text(table) for table in _tables(board)]
    return "\n\n".join([*sections, "\n".join([*_legend(leaderboard), *_verified(leaderboard)])])


def leaderboard_markdown(leaderboard: Mapping[str, Any]) -> str:
    """The tables of `make_leaderboard` as Markdown. Texts of the submissions are escaped."""
    sections = ["# Leaderboard"]
    for board in leaderboard["boards"]:
        heading, *rest = map(_escape, _heading(board))
        sections += [f"## {heading}", *rest, *map(_escape, _notes(board))]
        sections += [_as_markdown(table) for table in _tables(board)]
    verified = [f"- {_escape(line)}" for line in _verified(leaderboard)]
    sections.append(" ".join(map(_escape, _legend(leaderboard))))
    return "\n\n".join([*sections, *(["\n".join(verified)] if verified else [])]) + "\n"


def _heading(board: Mapping[str, Any]) -> list[str]:
    suite, versions = board["suite"], board["stamp"]
    return [
        f"{suite['name']}: {', '.join(board['scenarios']) or 'no scenario that all have completed'}",
        f"suite {suite['hash'][:_HASH]}, engine {versions['engine_hash'][:_HASH]}, opponents "
        f"{versions['opponents_hash'][:_HASH]}",
    ]


def _notes(board: Mapping[str, Any]) -> list[str]:
    notes = []
    if not board["installed"]:
        notes.append(
            f"played with echelon-env {shorten(board['stamp']['package'], 20)}: not comparable with the others"
        )
    for each in board["not_ranked"]:
        played = f" has completed {', '.join(each['complete']) or 'no scenario'} only"
        start = "not ranked: "
        notes.append(f"{start}{shorten(_file_name(each['file']), WIDTH - len(start + played))}{played}")
    return notes


def _tables(board: Mapping[str, Any]) -> Iterator[_Table]:
    rows = board["rows"]
    if not rows:
        return
    names = [row["method"] for row in rows]
    ranked = [f"{row['rank']:>2} {row['method']}" for row in rows]
    yield _Table(
        "scores in %",
        [
            _Column("method", 26, ranked),
            _Column("runs", 5, [str(row["runs"]) for row in rows]),
            _Column("interquartile mean", 21, [format_share(row["iqm"]) for row in rows]),
            _Column("mean", 21, [format_share(row["mean"]) for row in rows]),
            _Column("over", 7, [row["interval_over"] for row in rows]),
        ],
        links=[row["url"] for row in rows],
        authors=[row["authors"] for row in rows],
    )
    groups = {"against": ("wins_against", board["opponents"]), "in": ("wins_in", board["scenarios"])}
    for word, (key, heads) in groups.items():
        if len(heads) > 1:
            columns = [_Column(head, 10, [percent(row[key][head]) for row in rows]) for head in heads]
            yield _Table(f"battles won in %, {word}", [_Column("method", 20, names), *columns])
    runs = [(row, run) for row in rows for run in row["submissions"]]
    yield _Table(
        "submissions; decisions and CPU minutes of the training are as stated",
        [
            _Column("method", 16, [row["method"] for row, _ in runs]),
            _Column("file", 16, [_file_name(run["file"]) for _, run in runs]),
            _Column("decisions", 13, [f"{run['decisions']:,}" if run["decisions"] else "-" for _, run in runs]),
            _Column("CPU min", 8, [f"{run['cpu_minutes']:,.0f}" if run["cpu_minutes"] else "-" for _, run in runs]),
            _Column("actions", 14, [row["action_mode"] for row, _ in runs]),
            _Column("results", 13, [run["results_hash"][:_HASH] for _, run in runs]),
        ],
    )


def _legend(leaderboard: Mapping[str, Any]) -> list[str]:
    return [
        f"[low, high] are intervals of {100 * leaderboard['confidence']:.0f} %: over the maps, or over the training",
        "runs of a method with at least 3 of them",
    ]


def _verified(leaderboard: Mapping[str, Any]) -> Iterator[str]:
    """A line for each submission that was verified, and a sentence for each that was not."""
    for file, each in leaderboard.get("verified", {}).items():
        end = f": {plural(each['battles'], 'battle')} replayed, all as stated"
        name = _file_name(file)
        if each["failures"]:
            yield from (f"FAILED {name}: {failure}" for failure in each["failures"])
        else:
            yield f"verified {shorten(name, WIDTH - len('verified ' + end))}{end}"


def _file_name(file: str) -> str:
    """The name of a file without its folder, with question marks for characters that cannot be printed."""
    return "".join(letter if letter.isprintable() else "?" for letter in PurePath(file).name)


def _as_text(table: _Table) -> str:
    """The table with as many of its columns on a line as fit."""
    first, *others = table.columns
    lines = [shorten(table.title, WIDTH)]
    while others:
        block: list[_Column] = []
        while others and first.width + sum(each.width for each in block) + others[0].width <= WIDTH:
            block.append(others.pop(0))
        heads = "".join(f"{shorten(each.head, each.width - 1):>{each.width}}" for each in block)
        lines.append(f"{first.head:<{first.width}}{heads}")
        for place, name in enumerate(first.cells):
            cells = "".join(f"{shorten(each.cells[place], each.width - 1):>{each.width}}" for each in block)
            lines.append(f"{shorten(name, first.width - 1):<{first.width}}{cells}")
    return "\n".join(lines)


def _as_markdown(table: _Table) -> str:
    lines = [
        _row(each.head for each in table.columns),
        _row("---" if place == 0 else "---:" for place in range(len(table.columns))),
    ]
    for place in range(len(table.columns[0].cells)):
        name, *cells = (_escape(each.cells[place].strip()) for each in table.columns)
        if table.links and table.links[place]:
            name = f"[{name}]({table.links[place]})"
        if table.authors and table.authors[place]:
            name += f", {_escape(table.authors[place])}"
        lines.append(_row([name, *cells]))
    return f"{_escape(table.title)}:\n\n" + "\n".join(lines)


def _row(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def _escape(text: str) -> str:
    """A text that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", text)
