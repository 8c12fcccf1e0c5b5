"""Leaderboards as text of `WIDTH` columns, and as Markdown."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any
from unicodedata import combining, east_asian_width

from echelon_env.evaluate.tables import WIDTH, format_share, percent, plural, shorten
from echelon_env.storage.text import printable

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
    more: Sequence[_Column] = ()  # columns in Markdown only


def format_leaderboard(leaderboard: Mapping[str, Any]) -> str:
    """The tables of `make_leaderboard` as lines of at most `WIDTH` columns of a terminal."""
    sections = []
    for board in leaderboard["boards"]:
        sections.append("\n".join(_wrapped(_heading(board))))
        for section in board["sections"]:
            sections.append("\n".join(_wrapped([_title(section)])))
            sections += [_as_text(table) for table in _tables(board, section)]
        sections += [_as_text(table) for table in _submissions(board)]
    return "\n\n".join([*sections, "\n".join(_wrapped(_legend(leaderboard)))])


def leaderboard_markdown(leaderboard: Mapping[str, Any]) -> str:
    """The tables of `make_leaderboard` as Markdown. Texts of the submissions are escaped."""
    parts = ["# Leaderboard"]
    for board in leaderboard["boards"]:
        heading, *rest = map(_escape, _heading(board))
        parts += [f"## {heading}", *rest]
        for section in board["sections"]:
            parts += [f"### {_escape(_title(section))}", *map(_as_markdown, _tables(board, section))]
        parts += map(_as_markdown, _submissions(board))
    return "\n\n".join([*parts, *map(_escape, _legend(leaderboard))]) + "\n"


def _heading(board: Mapping[str, Any]) -> Iterator[str]:
    suite, versions = board["suite"], board["stamp"]
    yield (
        f"{suite['name']}: suite {suite['hash'][:_HASH]}, engine {versions['engine_hash'][:_HASH]}, opponents "
        f"{versions['opponents_hash'][:_HASH]}"
    )
    if not board["installed"]:
        yield f"played with echelon-env {shorten(versions['package'], 20)}: not comparable with the installed one"
    if any(each["verified"] is None for each in (*board["submissions"], *board["not_ranked"])):
        yield "NOT VERIFIED: no proof was replayed, --verify does it"
    elif board["submissions"]:
        replayed, proofs = (sum(each[key] for each in board["submissions"]) for key in ("replayed", "proofs"))
        yield f"verified: {replayed:,} of {plural(proofs, 'battle')} won or drawn replayed, all as stated"
    yield from map(_not_ranked, board["not_ranked"])


def _not_ranked(each: Mapping[str, Any]) -> str:
    return f"not ranked: {_file_name(each['file'])}: {printable(each['reason'])}"


def _title(section: Mapping[str, Any]) -> str:
    return f"scenarios: {', '.join(section['scenarios'])}"


def _label(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """A row's rank and method, and what distinguishes it from other rows of the same name."""
    others = [each for each in rows if each["method"] == row["method"]]
    differ = [row[key] for key in ("action_mode", "authors") if len({each[key] for each in others}) > 1]
    return f"{row['rank']:>2} {row['method']}" + (f" ({', '.join(filter(None, differ))})" if any(differ) else "")


def _tables(board: Mapping[str, Any], section: Mapping[str, Any]) -> Iterator[_Table]:
    rows = section["rows"]
    labels = [_label(row, rows) for row in rows]
    runs = [row["iqm_of_runs"] for row in rows]
    several = [
        _Column("runs", 6, [str(len(each)) for each in runs]),
        _Column("of single runs", 17, [_range(each) if len(each) > 1 else "-" for each in runs]),
    ]
    yield _Table(
        "scores in %",
        [
            _Column("method", 24, labels),
            _Column("actions", 14, [row["action_mode"] for row in rows]),
            _Column("interquartile mean", 21, [format_share(row["iqm"]) for row in rows]),
            _Column("mean", 21, [format_share(row["mean"]) for row in rows]),
            *(several if any(len(each) > 1 for each in runs) else ()),
        ],
        links=[row["url"] for row in rows],
        more=[_Column("authors", 0, [row["authors"] for row in rows])],
    )
    groups = {"against": ("wins_against", board["opponents"]), "in": ("wins_in", section["scenarios"])}
    for word, (key, heads) in groups.items():
        if len(heads) > 1:
            columns = [_Column(head, 10, [percent(row[key][head]) for row in rows]) for head in heads]
            yield _Table(f"battles won in %, {word}", [_Column("method", 20, labels), *columns])


def _range(values: Sequence[float]) -> str:
    return f"{percent(min(values))} to {percent(max(values))}"


def _submissions(board: Mapping[str, Any]) -> Iterator[_Table]:
    """The table of the board's ranked submissions, if there are some."""
    runs = board["submissions"]
    if not runs:
        return
    methods = [run["method"] for run in runs]
    yield _Table(
        "submissions; decisions and CPU minutes of the training are as stated",
        [
            _Column("method", 16, [each["name"] for each in methods]),
            _Column("file", 16, [_file_name(run["file"]) for run in runs]),
            _Column("decisions", 13, [f"{each['decisions']:,}" if each["decisions"] else "-" for each in methods]),
            _Column("CPU min", 8, [f"{each['cpu_minutes']:,.0f}" if each["cpu_minutes"] else "-" for each in methods]),
            _Column("actions", 14, [run["action_mode"] for run in runs]),
            _Column("results", 13, [run["results_hash"][:_HASH] for run in runs]),
        ],
        more=[_Column(key, 0, [each[key] for each in methods]) for key in ("hardware", "note")],
    )


def _legend(leaderboard: Mapping[str, Any]) -> Iterator[str]:
    """What holds for all boards."""
    yield from map(_not_ranked, leaderboard["not_ranked"])
    if leaderboard["draw"]:
        battles, nonce = leaderboard["draw"]["battles"], leaderboard["draw"]["nonce"]
        yield f"replayed: {plural(battles, 'battle')} of each scenario and file, drawn with the nonce {nonce}"
    share = f"{100 * leaderboard['confidence']:.0f} %"
    yield f"[low, high] are intervals of {share} over the maps, not over training runs."


def _file_name(file: str) -> str:
    """The name of a file without its folder."""
    return printable(PurePath(file).name)


def _wrapped(lines: Iterable[str]) -> Iterator[str]:
    """Lines of at most `WIDTH` columns; further ones of a line are indented."""
    for line in lines:
        room = max(1, WIDTH * len(line) // max(1, _columns(line)))  # characters; fewer if some take two columns
        yield from (_fit(each, WIDTH) for each in textwrap.wrap(line, room, subsequent_indent="  "))


def _columns(text: str) -> int:
    """The columns of a text in a terminal: two for wide characters of East Asia, none for combining ones."""
    return sum(0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text)


def _fit(text: str, width: int) -> str:
    """A text shortened to some columns."""
    most = width
    while _columns(shortened := shorten(text, most)) > width:
        most -= 1
    return shortened


def _cell(text: str, width: int, *, left: bool = False) -> str:
    """A text in a cell of the table, with a gap of one column at least."""
    shown = _fit(text, width - 1)
    gap = " " * (width - _columns(shown))
    return shown + gap if left else gap + shown


def _as_text(table: _Table) -> str:
    """The table with as many of its columns on a line as fit."""
    first, *others = table.columns
    lines = [table.title]
    while others:
        block: list[_Column] = []
        while others and first.width + sum(each.width for each in block) + others[0].width <= WIDTH:
            block.append(others.pop(0))
        lines.append(
            _cell(first.head, first.width, left=True) + "".join(_cell(each.head, each.width) for each in block)
        )
        for place, name in enumerate(first.cells):
            cells = "".join(_cell(each.cells[place], each.width) for each in block)
            lines.append(_cell(name, first.width, left=True) + cells)
    return "\n".join(lines)


def _as_markdown(table: _Table) -> str:
    columns = [*table.columns, *(each for each in table.more if any(each.cells))]
    lines = [
        _row(each.head for each in columns),
        _row("---" if each in table.more or each is columns[0] else "---:" for each in columns),
    ]
    for place in range(len(table.columns[0].cells)):
        name, *cells = (_escape(each.cells[place].strip()) for each in columns)
        if table.links and table.links[place]:
            name = f"[{name}]({table.links[place]})"
        lines.append(_row([name, *cells]))
    return f"{_escape(table.title)}:\n\n" + "\n".join(lines)


def _row(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def _escape(text: str) -> str:
    """A text that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", text)
