"""The command `echelon league standings`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from echelon_env.evaluate.tables import shorten
from echelon_train.cli.league.diagnostics import format_warnings, warnings_document
from echelon_train.cli.league.output import (
    NAME,
    check_pictures,
    none_if_nan,
    percent,
    plural,
    print_result,
    rating_document,
    wrap,
)
from echelon_train.league.analysis import Analysis, analyse
from echelon_train.league.errors import LeagueError
from echelon_train.league.plots import save_rating_curve, save_strengths
from echelon_train.league.ratings.glicko2 import format_rating
from echelon_train.league.store.members import member_folder
from echelon_train.league.store.registry import League, Standing

_SHORT_KINDS = {"main_exploiter": "main expl.", "league_exploiter": "league expl."}


def run_standings(args: argparse.Namespace) -> int:
    """Show the members, the highest rating first."""
    check_pictures(args.picture, args.curve_picture)
    league = League.open(args.league)
    scores = league.pair_scores()
    standings = league.standings(scores)
    analysis = analyse(league, scores)
    ranked = [each for each in standings if args.all or each.member.state == "active"]
    champion = league.champion()
    if args.picture:
        save_strengths(args.picture, analysis.strengths, title=str(args.league))
    if args.curve_picture:
        _draw_curve(args.curve_picture, ranked, str(args.league))
    document = {
        "league": str(args.league),
        "periods": len(league.periods()),
        "unrated_matches": league.unrated_matches(),
        "anchor": league.settings.anchor,
        "champion": None if champion is None else champion.name,
        "standings": [_document(league, rank, each, analysis) for rank, each in enumerate(ranked, 1)],
        **warnings_document(analysis),
    }
    retired = len(standings) - len(ranked)
    lines = _format(document, ranked, analysis, retired)
    if champion is not None and champion.weights_sha256 is not None:
        lines.append(f"champion: {member_folder(league.path, champion.weights_sha256)}")
    print_result(args, document, lines)
    return 0


def _draw_curve(path: Path, ranked: list[Standing], title: str) -> None:
    members = [each.member for each in ranked]
    if all(member.kind == "scripted" for member in members):
        raise LeagueError(f"{title}: {path} would show the ratings over training, but no member is a policy")
    save_rating_curve(path, members, {each.member.name: each.rating for each in ranked}, title=title)


def _document(league: League, rank: int, standing: Standing, analysis: Analysis) -> dict[str, Any]:
    member = standing.member
    strength = analysis.strength(member.name)
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
        "score": none_if_nan(standing.score),
    }


def _format(document: Mapping[str, Any], ranked: list[Standing], analysis: Analysis, retired: int) -> list[str]:
    lines = [f"{'':<{5 + NAME}} {'kind':<12}{'rating ± 95%':>12}{'Bradley-Terry 95%':>19}{'maps':>7}{'score':>6}"]
    champion = document["champion"]
    for rank, each in enumerate(ranked, 1):
        member = each.member
        mark = "*" if member.name == champion else "-" if member.state == "retired" else " "
        strength = analysis.strength(member.name)
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
        lines.append(f"{plural(unrated, 'match is', 'matches are')} not rated yet: the next period rates them")
    return [*lines, *format_warnings(analysis)]
