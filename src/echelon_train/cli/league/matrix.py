"""The command `echelon league matrix`."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from echelon_env.evaluate.tables import shorten
from echelon_train.cli.league.diagnostics import format_warnings, warnings_document
from echelon_train.cli.league.output import (
    NAME,
    check_pictures,
    grid,
    percent,
    plural,
    print_result,
)
from echelon_train.league.analysis import Analysis, analyse
from echelon_train.league.plots import save_nash_average, save_payoff_matrix
from echelon_train.league.ratings.glicko2 import format_rating
from echelon_train.league.ratings.nash_averaging import NashAverage, nash_average
from echelon_train.league.ratings.payoffs import Payoffs
from echelon_train.league.store.registry import League

_COLUMN = 6


def run_matrix(args: argparse.Namespace) -> int:
    """Show the scores of all pairs, the Nash mixture, and whether ratings can describe the league."""
    check_pictures(args.picture, args.nash_picture)
    league = League.open(args.league)
    scores = league.pair_scores()
    shown = [each.member.name for each in league.standings(scores) if args.all or each.member.state == "active"]
    analysis = analyse(league, scores)
    games = analysis.payoffs.among(shown)
    average = nash_average(games, analysis.ratings)
    if args.picture:
        among = [pair for pair in analysis.mispredictions if {pair.first, pair.second} <= set(shown)]
        save_payoff_matrix(args.picture, games, analysis.ratings, mispredicted=among, title=str(args.league))
    if args.nash_picture:
        save_nash_average(args.nash_picture, average, title=str(args.league))
    if args.json:  # either of the two takes seconds in a large league
        print_result(args, _document(str(args.league), games, average, analysis), [])
    else:
        print_result(args, {}, _format(games, average, analysis))
    return 0


def _document(league: str, games: Payoffs, average: NashAverage, analysis: Analysis) -> dict[str, Any]:
    matrices = {"score": games.score, "low": games.low, "high": games.high}
    return {
        "league": league,
        "members": list(games.members),
        "games": games.games.tolist(),
        **{name: np.where(np.isnan(values), np.array(None), values).tolist() for name, values in matrices.items()},
        "nash": {
            "weights": average.weights.tolist(),
            "advantage": average.advantage.tolist(),
            "filled_pairs": int(average.filled.sum()) // 2,
        },
        **warnings_document(analysis),
    }


def _format(games: Payoffs, average: NashAverage, analysis: Analysis) -> list[str]:
    numbers = [str(number) for number in range(1, len(games.members) + 1)]
    names = [f"{number:>3} {shorten(name, NAME)}" for number, name in zip(numbers, games.members, strict=True)]
    cells = [[percent(value) for value in row] for row in games.score]
    lines = ["mean score in % of row against column", *grid(names, numbers, cells, _COLUMN), ""]
    label = max(map(len, names))
    lines.append(f"{'':<{label}}{'maps':>8}{'rating ± 95 %':>16}{'Nash weight %':>16}{'advantage':>12}")
    for place, name in enumerate(names):
        lines.append(
            f"{name:<{label}}{int(games.games[place].sum()):>8,}"
            f"{format_rating(analysis.ratings[games.members[place]]):>16}{percent(average.weights[place]):>16}"
            f"{round(average.advantage[place]) + 0:>12}"
        )
    filled, size = int(average.filled.sum()) // 2, len(games.members)
    lines.append("Nash weight: share in the Nash mixture; advantage: points against that mixture")
    if filled:
        pairs = size * (size - 1) // 2
        lines.append(f"{filled} of {plural(pairs, 'pair')} have not played: predicted by the ratings")
    cycle = analysis.cycle
    if cycle.loops:
        lines.append(f"cycle score {cycle.score:.2f} (0: ratings explain all, 1: nothing), p = {cycle.p_value:.3f}")
    else:
        lines.append("cycle score unknown: the pairs that have played close no cycle")
    return [*lines, *format_warnings(analysis)]
