"""The commands `echelon league standings`, `matrix` and `history`."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from echelon_env.cli.output import command
from echelon_env.evaluate.estimates import Interval
from echelon_env.evaluate.tables import WIDTH, percent, shorten
from echelon_train.cli.league.output import NAME, Result, plural, rating_document, wrap
from echelon_train.league.analysis import Analysis, analyse, warnings
from echelon_train.league.errors import LeagueError
from echelon_train.league.exploitability import exploitability
from echelon_train.league.ratings.glicko2 import Rating, format_rating
from echelon_train.league.ratings.payoffs import Payoffs
from echelon_train.league.store.members import Member, member_folder
from echelon_train.league.store.registry import League, Standing

_COLUMN = 6  # of the matrix
_PERIODS = 5  # columns of the history
_PERIOD_COLUMN = 12


def run_standings(args: argparse.Namespace) -> Result:
    """Show the members, the highest rating first."""
    league = League.open(args.league)
    standings, analysis = league.standings(), analyse(league)
    exploited = exploitability(league)
    ranked = [each for each in standings if _is_shown(each.member, args)]
    champion = league.champion()
    document = {
        "periods": len(league.periods()),
        "unrated_matches": league.unrated_matches(),
        "anchor": league.settings.anchor,
        "champion": None if champion is None else champion.name,
        "standings": [
            _standing_document(league, rank, each, analysis, exploited.get(each.member.name))
            for rank, each in enumerate(ranked, 1)
        ],
        **_warnings_document(analysis),
    }
    lines = _format_standings(document, ranked, analysis, len(standings) - len(ranked))
    if champion is not None and champion.weights_sha256 is not None:
        lines.append(f"champion: {member_folder(league.path, champion.weights_sha256)}")
    return Result(document, lines)


def _standing_document(
    league: League, rank: int, standing: Standing, analysis: Analysis, exploited: Interval | None
) -> dict[str, Any]:
    member = standing.member
    strength = analysis.strength(member.name)
    weights = member.weights_sha256
    return {
        "rank": rank,
        **{name: getattr(member, name) for name in ("name", "kind", "state", "parent", "age")},
        "checkpoint": None if weights is None else str(member_folder(league.path, weights)),
        **rating_document(standing.rating),
        "bradley_terry": None if strength is None else dict(zip(("strength", "low", "high"), strength, strict=True)),
        "games": standing.games,
        "score": None if math.isnan(standing.score) else standing.score,
        "exploiters": None if exploited is None else asdict(exploited),
    }


def _format_standings(
    document: Mapping[str, Any], ranked: list[Standing], analysis: Analysis, retired: int
) -> list[str]:
    lines = [f"{'':<{5 + NAME}} {'kind':<12}{'rating ± 95%':>12}{'Bradley-Terry 95%':>19}{'maps':>7}{'score':>6}"]
    champion = document["champion"]
    for rank, each in enumerate(ranked, 1):
        member = each.member
        mark = "*" if member.name == champion else "-" if member.state == "retired" else " "
        strength = analysis.strength(member.name)
        fitted = "-" if strength is None else "{:.0f} [{:.0f}, {:.0f}]".format(*strength)
        lines.append(
            f"{rank:>3}{mark} {shorten(member.name, NAME):<{NAME}} {member.kind:<12}"
            f"{format_rating(each.rating):>12}{fitted:>19}{each.games:>7,}{percent(each.score):>6}"
        )
    periods = document["periods"]
    legend = f"after {plural(periods, 'rating period')}" if periods else "before the first rating period"
    legend += f"; {document['anchor']} anchors the scale"
    if champion is not None:
        legend += "; * champion"
    if any(each.member.state == "retired" for each in ranked):
        legend += "; - retired"
    if retired:
        legend += f"; {retired} retired: --all"
    lines += wrap(legend)
    exploited = {each["name"]: each["exploiters"] for each in document["standings"] if each["exploiters"]}
    if exploited:
        scores = ", ".join(f"{name} {percent(score['estimate'])} %" for name, score in exploited.items())
        lines += wrap(f"exploiters score against their victims: {scores}")
    unrated = document["unrated_matches"]
    if unrated:
        lines.append(f"{plural(unrated, 'match is', 'matches are')} not rated yet: the next period rates them")
    return [*lines, *_format_warnings(analysis)]


def run_matrix(args: argparse.Namespace) -> Result:
    """Show the scores of all pairs, and whether ratings can describe the league."""
    league = League.open(args.league)
    shown = [each.member.name for each in league.standings() if _is_shown(each.member, args)]
    analysis = analyse(league)
    games = analysis.payoffs.among(shown)
    if args.json:  # either of the two takes seconds in a large league
        return Result(_matrix_document(games, analysis), [])
    return Result({}, _format_matrix(games, analysis))


def _matrix_document(games: Payoffs, analysis: Analysis) -> dict[str, Any]:
    matrices = {"score": games.score, "low": games.low, "high": games.high}
    return {
        "members": list(games.members),
        "games": games.games.tolist(),
        **{name: np.where(np.isnan(values), np.array(None), values).tolist() for name, values in matrices.items()},
        **_warnings_document(analysis),
    }


def _format_matrix(games: Payoffs, analysis: Analysis) -> list[str]:
    numbers = [str(number) for number in range(1, len(games.members) + 1)]
    names = [f"{number:>3} {shorten(name, NAME)}" for number, name in zip(numbers, games.members, strict=True)]
    cells = [[percent(value) for value in row] for row in games.score]
    lines = ["mean score in % of row against column", *_grid(names, numbers, cells, _COLUMN)]
    cycle = analysis.cycle
    if cycle.loops:
        lines.append(f"cycle score {cycle.score:.2f} (0: ratings explain all, 1: nothing), p = {cycle.p_value:.3f}")
    else:
        lines.append("cycle score unknown: the pairs that have played close no cycle")
    return [*lines, *_format_warnings(analysis)]


def run_history(args: argparse.Namespace) -> Result:
    """Show the ratings after a few evenly spaced periods; JSON has all periods."""
    league = League.open(args.league)
    shown = [member.name for member in league.members() if _is_shown(member, args)]
    closed = league.periods()
    places = np.unique(np.linspace(0, len(closed) - 1, min(_PERIODS, len(closed))).round().astype(int))
    chosen = [closed[place] for place in places]
    history = league.history(shown, None if args.json else chosen)
    if not history:
        raise LeagueError(f"{args.league}: no rating period is closed yet; {command('league', 'play', args.league)}")
    documents = [
        {"period": period, "ratings": {name: rating_document(rating) for name, rating in ratings.items()}}
        for period, ratings in history.items()
    ]
    return Result({"history": documents}, _format_history(history, chosen, len(closed)))


def _format_history(history: Mapping[int, Mapping[str, Rating]], chosen: Sequence[int], closed: int) -> list[str]:
    """One row per member, the highest rating first, with a few of the periods."""
    last = history[chosen[-1]]
    names = sorted(last, key=lambda name: -last[name].rating)
    cells = [
        [format_rating(history[period][name]) if name in history[period] else "-" for period in chosen]
        for name in names
    ]
    periods = [f"period {period}" for period in chosen]
    lines = _grid([shorten(name, NAME) for name in names], periods, cells, _PERIOD_COLUMN)
    shown = "" if len(chosen) == closed else f"; {len(chosen)} of {closed} periods, all with --json"
    return [*lines, f"ratings ± half of their 95 % intervals{shown}"]


def _is_shown(member: Member, args: argparse.Namespace) -> bool:
    return args.all or member.state == "active"


def _warnings_document(analysis: Analysis) -> dict[str, Any]:
    """For JSON, what `_format_warnings` says."""
    return {
        "mispredictions": [
            {**asdict(pair), "explained_by_strengths": pair not in analysis.unexplained}
            for pair in analysis.mispredictions
        ],
        "cycle": {**asdict(analysis.cycle), "significant": analysis.cycle.significant},
    }


def _format_warnings(analysis: Analysis) -> list[str]:
    return [line for sentence in warnings(analysis, "'echelon league matrix --json'") for line in wrap(sentence)]


def _grid(rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> list[str]:
    """A table with names of rows and columns, in blocks of as many columns of `width` as fit into a line."""
    label = max(map(len, rows))
    block = (WIDTH - label) // width
    lines = []
    for start in range(0, len(columns), block):
        chosen = slice(start, start + block)
        lines.append(" " * label + "".join(f"{name:>{width}}" for name in columns[chosen]))
        for name, values in zip(rows, cells, strict=True):
            lines.append(f"{name:<{label}}" + "".join(f"{value:>{width}}" for value in values[chosen]))
    return lines
