"""Who is how strong in a league, now and after each rating period."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from echelon_env.evaluate.tables import shorten
from echelon_train.cli.league.insight import Insight, format_warnings, look_into, warnings_document
from echelon_train.cli.league.output import (
    NAME,
    check_pictures,
    deliver,
    format_rating,
    grid,
    known,
    percent,
    plural,
    rating_document,
    wrap,
)
from echelon_train.league.errors import LeagueError
from echelon_train.league.pictures import save_rating_curve, save_rating_history, save_strengths
from echelon_train.league.ratings.glicko2 import Rating
from echelon_train.league.store.members import member_folder
from echelon_train.league.store.registry import League, Standing

_SHORT_KINDS = {"main_exploiter": "main expl.", "league_exploiter": "league expl."}
_PERIODS = 5  # that a table has place for
_PERIOD_COLUMN = 12


def run_standings(args: argparse.Namespace) -> int:
    """Show the members, the strongest first."""
    check_pictures(args.picture, args.curve_picture)
    league = League.open(args.league)
    standings = league.standings()
    insight = look_into(league)
    ranked = [each for each in standings if args.all or each.member.state == "active"]
    champion = league.champion()
    if args.picture:
        save_strengths(args.picture, insight.strengths, title=str(args.league))
    if args.curve_picture:
        _draw_curve(args.curve_picture, ranked, str(args.league))
    document = {
        "league": str(args.league),
        "periods": len(league.history()),
        "unrated_matches": league.unrated_matches(),
        "anchor": league.settings.anchor,
        "champion": None if champion is None else champion.name,
        "standings": [_document(league, rank, each, insight) for rank, each in enumerate(ranked, 1)],
        **warnings_document(insight),
    }
    retired = len(standings) - len(ranked)
    lines = _format(document, ranked, insight, retired)
    if champion is not None and champion.weights_sha256 is not None:
        lines.append(f"champion: {member_folder(league.path, champion.weights_sha256)}")
    deliver(args, document, lines)
    return 0


def run_history(args: argparse.Namespace) -> int:
    """Show the ratings after some periods, evenly spread, or as JSON after all."""
    check_pictures(args.picture)
    league = League.open(args.league)
    active = {member.name for member in league.members() if args.all or member.state == "active"}
    history = {
        period: {name: rating for name, rating in ratings.items() if name in active}
        for period, ratings in league.history().items()
    }
    if not history:
        raise LeagueError(f"{args.league}: no rating period is closed yet; echelon league play {args.league}")
    if args.picture:
        save_rating_history(args.picture, history, title=str(args.league))
    document = {
        "league": str(args.league),
        "history": [
            {"period": period, "ratings": {name: rating_document(rating) for name, rating in ratings.items()}}
            for period, ratings in history.items()
        ],
    }
    deliver(args, document, _format_history(history))
    return 0


def _draw_curve(path: Path, ranked: list[Standing], title: str) -> None:
    members = [each.member for each in ranked]
    if all(member.kind == "scripted" for member in members):
        raise LeagueError(f"{title}: {path} would show what training brought, and no member has learned")
    save_rating_curve(path, members, {each.member.name: each.rating for each in ranked}, title=title)


def _document(league: League, rank: int, standing: Standing, insight: Insight) -> dict[str, Any]:
    member = standing.member
    strength = insight.strength(member.name)
    weights = member.weights_sha256
    return {
        "rank": rank,
        "name": member.name,
        "kind": member.kind,
        "state": member.state,
        "parent": member.parent,
        "age": member.age,
        "checkpoint": None if weights is None else str(member_folder(league.path, weights)),
        **rating_document(standing.rating),
        "bradley_terry": None if strength is None else dict(zip(("strength", "low", "high"), strength, strict=True)),
        "games": standing.games,
        "score": known(standing.score),
    }


def _format(document: Mapping[str, Any], ranked: list[Standing], insight: Insight, retired: int) -> list[str]:
    lines = [f"{'':<{5 + NAME}} {'kind':<12}{'rating ± 95%':>12}{'Bradley-Terry 95%':>19}{'maps':>7}{'score':>6}"]
    champion = document["champion"]
    for rank, each in enumerate(ranked, 1):
        member = each.member
        mark = "*" if member.name == champion else "-" if member.state == "retired" else " "
        strength = insight.strength(member.name)
        fitted = "-" if strength is None else "{:.0f} [{:.0f}, {:.0f}]".format(*strength)
        lines.append(
            f"{rank:>3}{mark} {shorten(member.name, NAME):<{NAME}} {_SHORT_KINDS.get(member.kind, member.kind):<12}"
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
    unrated = document["unrated_matches"]
    if unrated:
        lines.append(f"{plural(unrated, 'match is', 'matches are')} not rated yet: the next period has them")
    return [*lines, *format_warnings(insight)]


def _format_history(history: Mapping[int, Mapping[str, Rating]]) -> list[str]:
    """A row for each member, the best first, in a few of the periods."""
    periods = [*history]
    places = np.unique(np.linspace(0, len(periods) - 1, min(_PERIODS, len(periods))).round().astype(int))
    chosen = [periods[place] for place in places]
    last = history[periods[-1]]
    names = sorted(last, key=lambda name: -last[name].rating)
    cells = [
        [format_rating(history[period][name]) if name in history[period] else "-" for period in chosen]
        for name in names
    ]
    lines = grid(
        [shorten(name, NAME) for name in names], [f"period {period}" for period in chosen], cells, _PERIOD_COLUMN
    )
    shown = "" if len(chosen) == len(periods) else f"; {len(chosen)} of {len(periods)} periods, all with --json"
    return [*lines, f"ratings with the reach of their 95 % intervals{shown}"]
