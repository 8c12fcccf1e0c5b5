"""Reports as text tables for a terminal of `WIDTH` columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from echelon_env.evaluate.battle_totals import measures
from echelon_env.layout.measures import MEASURES
from echelon_env.storage.text import printable

WIDTH = 80
"""Maximum width of a line in characters."""

_MATRIX_COLUMN = 10  # width of a matrix column, including a gap of 1
SHARES = ("win", "draw", "loss", "score")
"""Keys of a match's intervals, in the order of display."""

INTERVALS = "intervals: of win, draw and loss over battles, of scores over independent maps"
"""Why the interval of a score differs from that of a win rate: the two battles of a map are not independent."""

ENOUGH_MAPS = 1000
"""Minimum number of training maps for results on other maps to be meaningful as results on unseen maps."""

_SHARE_COLUMN = WIDTH // (1 + len(SHARES))  # width of a share with its interval
_NAME = 20  # width of a name at the start of a row
_LONG_NAME = 44  # width of a name in a header line
_HASH = 12  # number of shown digits of a hash


def shorten(name: str, width: int) -> str:
    """A printable name of at most `width` characters. A longer one is cut in the middle, as its ends are most specific.

    >>> shorten("runs/skirmish/checkpoints/0000300000", 17)
    'runs/ski…00300000'
    """
    name = printable(name)
    if len(name) <= width:
        return name
    tail = (width - 1) // 2
    return f"{name[: width - 1 - tail]}…{name[len(name) - tail :]}"


def format_share(share: Mapping[str, float | None]) -> str:
    """A share and its interval in per cent, such as ``"52.0 [45.1, 58.8]"``, or ``"52.0 -"`` without an interval."""
    low, high = share["low"], share["high"]
    interval = "-" if low is None or high is None else f"[{100 * low:.1f}, {100 * high:.1f}]"
    return f"{percent(share['estimate'])} {interval}"


def describe_maps(maps: int, maps_trained_on: int | None, trained_maps: int | None) -> str:
    """A line with the number of a player's evaluation maps, and of those among them that are training maps.

    `maps_trained_on` of the `maps` are among its `trained_maps` training maps. Both are None if the training maps are
    unknown.
    """
    text = f"on {plural(maps, 'map')}"
    if maps_trained_on is None or trained_maps is None:
        return text
    few = "" if trained_maps >= ENOUGH_MAPS else ": too few to speak of unseen maps"
    return f"{text}, {maps_trained_on or 'none'} of the {trained_maps:,} trained on{few}"


def format_bad_actions(report: Mapping[str, Any]) -> list[str]:
    """A line for each player of a report that had non-finite actions."""
    ends = {
        name: f": {plural(count, 'entry', 'entries')} of its actions not finite, played as 0"
        for name, count in report["bad_actions"].items()
        if count
    }
    return [f"{shorten(name, WIDTH - len(end))}{end}" for name, end in ends.items()]


def format_report(report: Mapping[str, Any]) -> str:
    """The tables of a report, see `make_report`.

    Returns
    -------
    Lines of at most `WIDTH` characters: versions, scenarios and players; wins, draws and losses of every pairing;
    cross-play matrices; aggregates of every player; probabilities of improvement; statistics per mech class. A report
    with partners has a table of these in place of all but the first.
    """
    if report.get("partners", ()):
        return "\n\n".join("\n".join(lines) for lines in (_header(report), *_partners(report)))
    sections = [
        _header(report),
        *_pairings(report),
        *_matrices(report),
        _aggregates(report),
        _improvements(report),
        *_classes(report),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def _header(report: Mapping[str, Any]) -> list[str]:
    stamp, suite = report["stamp"], report["suite"]
    lines = [
        f"echelon-env {stamp['package']}, engine {stamp['engine_hash'][:_HASH]}, "
        f"opponents {stamp['opponents_hash'][:_HASH]}"
    ]
    if suite is not None:
        part = "" if suite["complete"] else ", a part of it"
        lines.append(f"suite {suite['name']} ({suite['hash'][:_HASH]}){part}")
    lines += [
        f"{shorten(name, _LONG_NAME)}: {plural(each['maps'], 'map')}" for name, each in report["scenarios"].items()
    ]
    partners = {row["partner"] for row in report.get("partners", ())}
    for place, player in enumerate(report["players"]):
        if partners and place and player["name"] not in partners:
            continue  # a team of both
        mode = player["action_mode"]
        acts = "does nothing" if mode == "none" else f"{mode} actions"
        lines.append(f"{shorten(player['name'], _LONG_NAME)}: {acts}")
        if player["trained_maps"] is not None:
            lines.append(f"  {describe_maps(player['maps'], player['maps_trained_on'], player['trained_maps'])}")
    return [
        *lines,
        *format_bad_actions(report),
        f"every map is played from both sides; [low, high] are intervals of {100 * report['confidence']:.0f} %",
        INTERVALS,
    ]


def _pairings(report: Mapping[str, Any]) -> Iterator[list[str]]:
    """For every scenario and first player, a table with a row for each match."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for match in report["matches"]:
        groups.setdefault((match["scenario"], match["first"]), []).append(match)
    for (scenario, first), matches in groups.items():
        start, end = f"{shorten(first, _LONG_NAME)} in ", ": % of battles"
        lines = [f"{start}{shorten(scenario, WIDTH - len(start + end))}{end}"]
        lines.append(_SHARE_COLUMN * " " + "".join(f"{name:>{_SHARE_COLUMN}}" for name in SHARES))
        for match in matches:
            shares = "".join(f"{_format_outward(match[name]):>{_SHARE_COLUMN}}" for name in SHARES)
            lines.append(f"{shorten('v ' + match['second'], _SHARE_COLUMN):<{_SHARE_COLUMN}}{shares}")
        yield lines


def _partners(report: Mapping[str, Any]) -> Iterator[list[str]]:
    """For every scenario and opponent, a table with a row for each partner."""
    player = report["players"][0]["name"]
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in report.get("partners", ()):
        groups.setdefault((row["scenario"], row["opponent"]), []).append(row)
    for (scenario, opponent), rows in groups.items():
        end = f" v {shorten(opponent, _NAME)} in {shorten(scenario, _NAME)}: mean map scores in %"
        lines = [f"{shorten(player, WIDTH - len(end))}{end}"]
        lines.append(f"its own copies: {format_share(rows[0]['self_play'])}")
        lines.append(f"{'beside':<16}{'mixed team':>20}{'partner alone':>20}{'gain':>24}")
        for row in rows:
            shares = f"{format_share(row['mixed']):>20}{format_share(row['partner_self_play']):>20}"
            lines.append(f"{shorten(row['partner'], 15):<16}{shares}{format_share(row['gain']):>24}")
        yield lines


def _matrices(report: Mapping[str, Any]) -> Iterator[list[str]]:
    """Mean scores of rows against columns for every scenario and, if there are several, pooled over all."""
    cross_play = report["cross_play"]
    if len(report["matches"]) == len(cross_play["scenarios"]):
        return  # one pairing: the aggregates show its score
    players = cross_play["players"]
    panels = dict(cross_play["scenarios"]) if len(report["players"]) > 1 else {}  # one player's scores are in its rows
    if len(cross_play["scenarios"]) > 1:
        panels["all scenarios"] = cross_play["pooled"]
    for name, panel in panels.items():
        rows = [i for i, player in enumerate(players) if player in {p["name"] for p in report["players"]}]
        columns = [j for j in range(len(players)) if any(panel["score"][i][j] is not None for i in rows)]
        end = ": mean score in % of row against column"
        cells = {players[i]: {players[j]: percent(panel["score"][i][j]) for j in columns} for i in rows}
        yield _matrix(f"{shorten(name, WIDTH - len(end))}{end}", cells)


def _matrix(title: str, cells: Mapping[str, Mapping[str, str]]) -> list[str]:
    """A table of texts by row and column, split into blocks of columns that fit on a line."""
    label = min(_NAME, max(map(len, cells)))
    block = (WIDTH - label) // _MATRIX_COLUMN
    columns = [*next(iter(cells.values()))]
    lines = [title]
    for start in range(0, len(columns), block):
        chosen = columns[start : start + block]
        heads = "".join(f"{shorten(name, _MATRIX_COLUMN - 1):>{_MATRIX_COLUMN}}" for name in chosen)
        lines.append(f"{'':<{label}}{heads}")
        for row, texts in cells.items():
            values = "".join(f"{texts[name]:>{_MATRIX_COLUMN}}" for name in chosen)
            lines.append(f"{shorten(row, label):<{label}}{values}")
    return lines


def _aggregates(report: Mapping[str, Any]) -> list[str]:
    lines = ["scores of maps in %: 100 for wins on both sides, 50 for one win or two draws"]
    lines.append(f"{'':<{_NAME}}{'opponents':>10}{'maps':>7}{'mean':>21}{'interquartile mean':>21}")
    for player, each in report["aggregate"].items():
        counts = f"{len(each['opponents']):>10,}{each['maps']:>7,}"
        means = f"{format_share(each['mean']):>21}{format_share(each['iqm']):>21}"
        lines.append(f"{shorten(player, _NAME):<{_NAME}}{counts}{means}")
    return lines


def _improvements(report: Mapping[str, Any]) -> list[str]:
    pairs = report["probability_of_improvement"]
    if not pairs:
        return []
    lines = ["probability that the first scores higher than the second on a map, in %"]
    for pair in pairs:
        names = f"{shorten(pair['player'], 24)} over {shorten(pair['over'], 24)}"
        lines.append(f"{names:<54}{format_share(pair):>24}")
    return lines


def _classes(report: Mapping[str, Any]) -> Iterator[list[str]]:
    """For every player, a table with a column for each of its mech classes."""
    for player, classes in report["classes"].items():
        if not classes:
            continue
        found = {name: measures(sums) for name, sums in classes.items()}
        cells = {"mechs": {name: f"{sums['mechs']:,.0f}" for name, sums in classes.items()}}
        for each in MEASURES:
            if all({each.sum, each.per} <= sums.keys() for sums in classes.values()):
                cells[each.heading] = {name: _cell(found[name][each.name], each.is_share) for name in classes}
        yield _matrix(f"{shorten(player, _LONG_NAME)}: per mech and battle", cells)


def _format_outward(share: Mapping[str, float]) -> str:
    """A shorter `format_share`: the ends of the interval are rounded outwards to whole per cent."""
    return f"{100 * share['estimate']:.1f} [{math.floor(100 * share['low'])}, {math.ceil(100 * share['high'])}]"


def plural(number: int, what: str, several: str | None = None) -> str:
    """A number with its noun, such as ``"1 match"``."""
    return f"{number:,} {what if number == 1 else several or what + 's'}"


def percent(value: float | None) -> str:
    """A share in per cent, such as ``"52.1"``; ``"-"`` for None and NaN."""
    return "-" if value is None or math.isnan(value) else f"{100 * value:.1f}"


def _cell(value: float | None, is_share: bool) -> str:
    if value is None or is_share:
        return percent(value)
    return f"{value:,.1f}" if value >= 10 else f"{value:.2f}"
