"""Output of the commands of `echelon league`: JSON, or lines of at most `WIDTH` columns."""

from __future__ import annotations

import argparse
import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from matplotlib.backend_bases import FigureCanvasBase
from rich.status import Status

from echelon_env.cli.tournament import check_new_file
from echelon_env.config.schema import ConfigError
from echelon_env.evaluate.statistics import map_scores, score_interval
from echelon_env.evaluate.tables import WIDTH, format_share
from echelon_env.evaluate.tables import percent as percent
from echelon_env.evaluate.tables import plural as plural
from echelon_train.console import PrintableConsole
from echelon_train.league.ratings.glicko2 import REACH, Rating
from echelon_train.league.store.records import PlayedMatch

NAME = 18
"""Columns for a member's name at the beginning of a row."""


def print_result(args: argparse.Namespace, document: Mapping[str, Any], lines: Sequence[str]) -> None:
    """Print the result of a command."""
    print(json.dumps(document, indent=2, allow_nan=False) if args.json else "\n".join(lines), flush=True)


def show_status(text: str) -> Status:
    """A context that shows on stderr what takes long, if that is a terminal."""
    return PrintableConsole(stderr=True).status(text)


def none_if_nan(value: float) -> float | None:
    """A number for JSON: None instead of NaN."""
    return None if math.isnan(value) else float(value)


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


def grid(rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> list[str]:
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


def check_pictures(*paths: Path | None) -> None:
    """Raise ConfigError or OSError for a picture that cannot be written, before anything is computed."""
    formats = sorted(FigureCanvasBase.get_supported_filetypes())
    given = [path for path in paths if path is not None]
    for path in given:
        if path.suffix.removeprefix(".") not in formats:
            raise ConfigError(f"{path}: expected the name of a picture that ends in one of .{', .'.join(formats)}")
        if given.count(path) > 1:
            raise ConfigError(f"{path}: expected another name for each picture")
        check_new_file(path)
