"""Results of the commands of `echelon league`: JSON, or lines of at most `WIDTH` columns."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from rich.status import Status

from echelon_env.evaluate.estimates import map_scores, score_interval
from echelon_env.evaluate.tables import WIDTH, format_share
from echelon_env.evaluate.tables import percent as percent
from echelon_env.evaluate.tables import plural as plural
from echelon_train.console import PrintableConsole
from echelon_train.league.ratings.glicko2 import REACH, Rating
from echelon_train.league.store.records import PlayedMatch

NAME = 18
"""Columns for a member's name at the beginning of a row."""


INTERRUPTED = 130
"""Exit code after Ctrl-C."""


class Result(NamedTuple):
    """What a command has found, for JSON and as text, and its exit code."""

    document: Mapping[str, Any]
    lines: Sequence[str]
    code: int = 0


def show_status(text: str) -> Status:
    """A context that shows on stderr what takes long, if that is a terminal."""
    return PrintableConsole(stderr=True).status(text)


def rating_document(rating: Rating) -> dict[str, float]:
    """A rating for JSON, with its interval."""
    reach = REACH * rating.deviation
    return {
        "rating": rating.rating,
        "deviation": rating.deviation,
        "volatility": rating.volatility,
        "low": rating.rating - reach,
        "high": rating.rating + reach,
    }


def match_document(played: PlayedMatch) -> dict[str, Any]:
    """A match for JSON. The score, with its interval, is that of the first player."""
    match = played.match
    return {
        "uuid": played.uuid,
        "first": match.first,
        "second": match.second,
        "scenario": match.scenario,
        "maps": len(match.battles) // 2,
        "wins": match.wins,
        "draws": match.draws,
        "losses": match.losses,
        "score": asdict(score_interval({None: map_scores(match)})),
        "learner": played.learner,
        "worker": played.worker,
        "played_at": played.played_at,
    }


def describe_match(played: PlayedMatch) -> list[str]:
    """A match as text."""
    match = played.match
    maps = plural(len(match.battles) // 2, "map")
    return [
        *wrap(f"{match.first} against {match.second} in {match.scenario}, {maps} from both sides:"),
        f"  {match.wins} won, {match.draws} drawn, {match.losses} lost; score in % "
        f"{format_share(asdict(score_interval({None: map_scores(match)})))}",
        f"  match {played.uuid}",
    ]


def wrap(text: str) -> list[str]:
    """A sentence wrapped into lines; all but the first are indented."""
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
