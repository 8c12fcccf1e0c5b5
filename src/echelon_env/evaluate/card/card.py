"""The card of a player as a document of plain values, its file, and its text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import ConfigError, nearest_name
from echelon_env.evaluate.battle_totals import BattleTotals
from echelon_env.evaluate.card.ablations import GROUPS, Ablation, ablate, ablations
from echelon_env.evaluate.card.anatomy import LINES, anatomy
from echelon_env.evaluate.matches import Match, play_match
from echelon_env.evaluate.players import Player
from echelon_env.evaluate.stamps import battle_hash, stamp
from echelon_env.evaluate.statistics import CONFIDENCE, Interval, map_scores, score_interval
from echelon_env.evaluate.tables import WIDTH, format_share, percent, shorten
from echelon_env.storage.atomic import write_json
from echelon_env.storage.reading import parse_json, read_regular_file

__all__ = [
    "CARD_FILE",
    "WEAPON_COLUMNS",
    "CardError",
    "chosen",
    "format_card",
    "format_number",
    "make_card",
    "read_card",
    "write_card",
]

FORMAT, VERSION = "echelon-card", 1

CARD_FILE = "card.json"
"""Name of the file in a run's folder."""

WEAPON_COLUMNS = {"shots": "shots a battle", "untargeted": "no target, %", "hits": "hits, %", "damage": "of damage, %"}
"""Key of a weapon's number in the anatomy -> heading."""

MAX_BYTES, MAX_ROWS, MAX_NAME = 1 << 20, 200, 1024
_THING = 34  # width of the column of things in the text
_EVEN = 0.5  # the score of equals


class CardError(ConfigError):
    """A file that holds no card."""


def chosen(config: BattleConfig, names: Sequence[str] | None) -> tuple[Ablation, ...]:
    """The ablations of a battle with these names, or all. Raises ConfigError for another name, with the nearest one."""
    every = {each.name: each for each in ablations(config)}
    for name in names or ():
        if name not in every:
            raise ConfigError(f"nothing to ablate is called {name!r}{nearest_name(name, every)}")
    return tuple(every[name] for name in dict.fromkeys(names or every))


def make_card(
    player: Player,
    opponent: Player,
    config: BattleConfig,
    seeds: Sequence[int],
    *,
    scenario: str,
    rows: Iterable[Ablation] | None = None,
    seed: int = 0,
    num_threads: int = 1,
    on_battles: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Play the battles of a card: the whole player, and the player without each thing, on the same maps.

    Parameters
    ----------
    player, opponent
        The player, and what it plays against: itself, or another.
    config, seeds, scenario, num_threads
        As of `play_match`. Every row takes two battles of each seed.
    rows
        What to ablate; by default all `ablations` of the configuration.
    seed
        That of the players' random choices, for the stamp.
    on_battles
        A callback that gets the number of finished battles.

    Returns
    -------
    A document of plain values for JSON; docs/evaluation.md lists its keys. Scores and worths are shares from 0 to 1.
    A thing's worth is the whole player's score (0.5 against itself) minus the score without it, on the same maps.

    Raises
    ------
    ValueError, TypeError, ConfigError
        As `play_match`.
    """
    finished = 0

    def play(first: Player, totals: BattleTotals | None = None) -> Match:
        nonlocal finished

        def report(battles: int) -> None:
            if on_battles is not None:
                on_battles(finished + battles)

        match = play_match(
            first,
            opponent,
            config,
            seeds,
            scenario=scenario,
            num_threads=num_threads,
            on_battles=report,
            totals=totals,
        )
        finished += len(match.battles)
        return match

    totals = BattleTotals()
    whole = play(player, totals)
    mirror = player.name == opponent.name
    return {
        "format": FORMAT,
        "version": VERSION,
        "stamp": {**stamp(), "seed": seed},
        "player": {"name": player.name, "identity": dict(player.identity), "action_mode": player.action_mode},
        "opponent": opponent.name,
        "scenario": scenario,
        "config_hash": battle_hash(config),
        "battles": len(whole.battles),
        "confidence": CONFIDENCE,
        "score": asdict(score_interval({scenario: map_scores(whole)})),
        "rows": [
            _row(each, play(ablate(player, each)), None if mirror else whole)
            for each in (ablations(config) if rows is None else rows)
        ],
        "anatomy": anatomy(whole, totals, config),
    }


def _row(ablation: Ablation, match: Match, whole: Match | None) -> dict[str, Any]:
    score = score_interval({match.scenario: map_scores(match)})
    worth = Interval(_EVEN - score.estimate, _EVEN - score.high, _EVEN - score.low)
    if whole is not None:
        worth = _mean_difference(map_scores(whole) - map_scores(match))
    return {"thing": ablation.name, "group": ablation.group, "score": asdict(score), "worth": asdict(worth)}


def _mean_difference(differences: Any) -> Interval:
    """The mean of paired differences of map scores (maps,) with Student's interval; the widest one of a single map."""
    mean = float(np.mean(differences))
    if len(differences) == 1:
        return Interval(mean, -1.0, 1.0)
    half = float(stats.t.isf((1 - CONFIDENCE) / 2, len(differences) - 1) * stats.sem(differences))
    return Interval(mean, max(-1.0, mean - half), min(1.0, mean + half))


def write_card(path: Path, card: Mapping[str, Any]) -> None:
    """Write the document of `make_card`, whole or not at all. Raises OSError."""
    write_json(path, card)


def read_card(path: Path) -> dict[str, Any]:
    """Read and check a card, which may come from a stranger.

    Raises CardError with the path and the reason for a file that is too large or no card, and OSError.
    """
    try:
        card = parse_json(read_regular_file(path, MAX_BYTES))
        _check(card)
    except ValueError as error:
        raise CardError(f"{path}: expected a card: {error}") from None
    checked: dict[str, Any] = card
    return checked


def _check(card: Any) -> None:
    """Raise ValueError, with the reason, unless all that `format_card` and reports show has the right types."""

    def need(fits: bool, what: str) -> None:
        if not fits:
            raise ValueError(what)

    def is_text(value: Any) -> bool:
        return isinstance(value, str) and 0 < len(value) <= MAX_NAME

    def is_number(value: Any, low: float = 0.0, high: float = 1e15) -> bool:
        return type(value) in (int, float) and low <= value <= high

    def is_interval(value: Any, low: float = 0.0) -> bool:
        return isinstance(value, dict) and all(is_number(value.get(k), low, 1.0) for k in ("estimate", "low", "high"))

    need(isinstance(card, dict) and card.get("format") == FORMAT, f"the format is not {FORMAT!r}")
    need(card.get("version") == VERSION, f"expected version {VERSION}, got {card.get('version')!r:.20}")
    player = card.get("player")
    need(isinstance(player, dict) and is_text(player.get("name")), "'player' has no name")
    need(all(is_text(card.get(name)) for name in ("opponent", "scenario")), "'opponent' or 'scenario' is no text")
    need(is_number(card.get("battles"), 1) and is_interval(card.get("score")), "'battles' or 'score' is no number")
    rows = card.get("rows")
    need(isinstance(rows, list) and len(rows) <= MAX_ROWS, f"'rows' is no list of at most {MAX_ROWS}")
    for row in rows:
        need(isinstance(row, dict) and is_text(row.get("thing")) and row.get("group") in GROUPS, "a row has no name")
        need(
            is_interval(row.get("score")) and is_interval(row.get("worth"), -1.0), f"{row['thing']!r:.60} has no score"
        )
    found = card.get("anatomy")
    need(isinstance(found, dict) and isinstance(found.get("weapons"), dict), "there is no 'anatomy'")
    need(all(found.get(key) is None or is_number(found[key]) for key in LINES), "'anatomy' has no numbers")
    need(len(found["weapons"]) <= MAX_ROWS, f"more than {MAX_ROWS} weapons")
    for name, of in found["weapons"].items():
        need(is_text(name) and isinstance(of, dict), "a weapon has no name")
        need(all(of.get(key) is None or is_number(of[key]) for key in WEAPON_COLUMNS), f"{name!r:.60} has no numbers")


def format_card(card: Mapping[str, Any]) -> str:
    """The card as text of at most `WIDTH` columns."""
    opponent = card["opponent"]
    against = "itself" if opponent == card["player"]["name"] else shorten(opponent, 24)
    rest = f" in {shorten(card['scenario'], 20)} against {against}, {card['battles']} battles a row"
    heading = f"{'without':<{_THING}}{'score, %':>24}{'worth, %':>12}"
    lines = [f"{shorten(card['player']['name'], WIDTH - len(rest))}{rest}", "", heading]
    for group in GROUPS:
        rows = [row for row in card["rows"] if row["group"] == group]
        for row in sorted(rows, key=lambda row: float(row["score"]["estimate"])):
            lines.append(
                f"{shorten(row['thing'], _THING - 1):<{_THING}}{format_share(row['score']):>24}"
                f"{100 * row['worth']['estimate']:>12.1f}"
            )
    lines += [f"{'(nothing)':<{_THING}}{format_share(card['score']):>24}", ""]
    for key, (label, unit) in LINES.items():
        lines.append(f"{label:<58}{format_number(card['anatomy'][key], unit):>12} {unit}")
    lines += ["", f"{'weapon':<16}" + "".join(f"{heading:>16}" for heading in WEAPON_COLUMNS.values())]
    for name, of in card["anatomy"]["weapons"].items():
        cells = (format_number(of[key], "%" if "%" in heading else "") for key, heading in WEAPON_COLUMNS.items())
        lines.append(f"{shorten(name, 15):<16}" + "".join(f"{cell:>16}" for cell in cells))
    return "\n".join(lines)


def format_number(value: float | None, unit: str) -> str:
    """A number of the anatomy, such as ``"12.5"``; ``"-"`` for None."""
    return percent(value) if unit == "%" or value is None else f"{value:,.1f}"
