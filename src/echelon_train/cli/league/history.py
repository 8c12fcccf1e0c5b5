"""The command `echelon league history`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

import numpy as np

from echelon_env.cli.output import command
from echelon_env.evaluate.tables import shorten
from echelon_train.cli.league.output import (
    NAME,
    check_pictures,
    grid,
    print_result,
    rating_document,
)
from echelon_train.league.errors import LeagueError
from echelon_train.league.plots import save_rating_history
from echelon_train.league.ratings.glicko2 import Rating, format_rating
from echelon_train.league.store.registry import League

_PERIODS = 5  # columns of the table
_PERIOD_COLUMN = 12


def run_history(args: argparse.Namespace) -> int:
    """Show the ratings after a few evenly spaced periods; JSON has all periods."""
    check_pictures(args.picture)
    league = League.open(args.league)
    shown = [member.name for member in league.members() if args.all or member.state == "active"]
    closed = league.periods()
    places = np.unique(np.linspace(0, len(closed) - 1, min(_PERIODS, len(closed))).round().astype(int))
    chosen = [closed[place] for place in places]
    history = league.history(shown, None if args.json or args.picture else chosen)
    if not history:
        raise LeagueError(f"{args.league}: no rating period is closed yet; {command('league', 'play', args.league)}")
    if args.picture:
        save_rating_history(args.picture, history, title=str(args.league))
    document = {
        "league": str(args.league),
        "history": [
            {"period": period, "ratings": {name: rating_document(rating) for name, rating in ratings.items()}}
            for period, ratings in history.items()
        ],
    }
    print_result(args, document, _format_history(history, chosen, len(closed)))
    return 0


def _format_history(history: Mapping[int, Mapping[str, Rating]], chosen: Sequence[int], closed: int) -> list[str]:
    """One row per member, the highest rating first, with a few of the periods."""
    last = history[chosen[-1]]
    names = sorted(last, key=lambda name: -last[name].rating)
    cells = [
        [format_rating(history[period][name]) if name in history[period] else "-" for period in chosen]
        for name in names
    ]
    lines = grid(
        [shorten(name, NAME) for name in names], [f"period {period}" for period in chosen], cells, _PERIOD_COLUMN
    )
    shown = "" if len(chosen) == closed else f"; {len(chosen)} of {closed} periods, all with --json"
    return [*lines, f"ratings ± half of their 95 % intervals{shown}"]
