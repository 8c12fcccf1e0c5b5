"""The card of a player as a document of plain values, its file, and its text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import ConfigError
from echelon_env.evaluate.battle_totals import BattleTotals
from echelon_env.evaluate.card.ablations import GROUPS, Ablation, ablate, ablations
from echelon_env.evaluate.card.summary import BATTLES, WEAPONS, battle_statistics, format_number
from echelon_env.evaluate.estimates import CONFIDENCE, Interval, difference_interval, map_scores, score_interval
from echelon_env.evaluate.matches import Match, play_match
from echelon_env.evaluate.players import Player
from echelon_env.evaluate.stamps import battle_hash, stamp
from echelon_env.evaluate.tables import WIDTH, format_share, shorten
from echelon_env.storage.atomic import write_json
from echelon_env.storage.reading import parse_json, read_regular_file

__all__ = ["CARD_FILE", "CardError", "format_card", "make_card", "read_card", "write_card"]

FORMAT, VERSION = "echelon-card", 1

CARD_FILE = "card.json"
"""Name of the file in a run's folder."""

MAX_BYTES, MAX_ROWS, MAX_NAME, MAX_NUMBER = 1 << 20, 200, 1024, 1e15
_EVEN = 0.5  # the score of equals
_NAME, _SHARE = 30, 25  # widths of columns


class CardError(ConfigError):
    """A file that holds no card."""


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
    on_battles: Callable[[int, str], None] | None = None,
) -> dict[str, Any]:
    """Play the battles of a card: the whole player, and the player without each ablation, on the same maps.

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
        A callback that gets the number of finished battles and the name of the player that plays.

    Returns
    -------
    A document of plain values for JSON; docs/reference/statistics.md lists its keys. Scores are shares from 0 to 1. The
    drop of a row is the whole player's score (0.5 against itself) minus the score without it, on the same maps.

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
                on_battles(finished + battles, first.name)

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
    of_equals = player.name == opponent.name
    return {
        "format": FORMAT,
        "version": VERSION,
        "stamp": {**stamp(), "seed": seed},
        **{role: _describe(each) for role, each in (("player", player), ("opponent", opponent))},
        "scenario": scenario,
        "config": config.to_dict(),
        "config_hash": battle_hash(config),
        "battles": len(whole.battles),
        "confidence": CONFIDENCE,
        "score": asdict(score_interval({scenario: map_scores(whole)})),
        "rows": [
            _row(each, play(ablate(player, each)), None if of_equals else whole)
            for each in (ablations(config) if rows is None else rows)
        ],
        "statistics": battle_statistics(whole, totals, config),
    }


def _describe(player: Player) -> dict[str, Any]:
    return {"name": player.name, "identity": dict(player.identity), "action_mode": player.action_mode}


def _row(ablation: Ablation, match: Match, whole: Match | None) -> dict[str, Any]:
    """A row of the card; `whole` is the whole player's match, or None if that is a match of equals."""
    score = score_interval({match.scenario: map_scores(match)})
    drop = Interval(_EVEN - score.estimate, _EVEN - score.high, _EVEN - score.low)
    if whole is not None:
        drop = difference_interval(map_scores(whole), map_scores(match))
    return {"without": ablation.name, "group": ablation.group, "score": asdict(score), "drop": asdict(drop)}


def write_card(path: Path, card: Mapping[str, Any]) -> None:
    """Write the document of `make_card`, whole or not at all. Raises OSError."""
    write_json(path, card)


def read_card(path: Path) -> dict[str, Any]:
    """Read and check a card, which may come from a stranger.

    Raises CardError with the path and the reason for a file that is too large or no card, and OSError.
    """
    try:
        card: dict[str, Any] = parse_json(read_regular_file(path, MAX_BYTES))
        _check(card)
    except ValueError as error:
        raise CardError(f"{path}: expected a card: {error}") from None
    return card


def _check(card: Any) -> None:
    """Raise ValueError, with the reason, unless all that is shown of a card has the right types."""

    def need(fits: bool, what: str) -> None:
        if not fits:
            raise ValueError(what)

    need(isinstance(card, dict) and card.get("format") == FORMAT, f"the format is not {FORMAT!r}")
    need(card.get("version") == VERSION, f"expected version {VERSION}, got {card.get('version')!r:.20}")
    for role in ("player", "opponent"):
        each = card.get(role)
        need(isinstance(each, dict), f"{role!r} is no object")
        need(_is_text(each.get("name")) and _is_text(each.get("action_mode")), f"{role!r} has no name or action mode")
        need(isinstance(each.get("identity"), dict), f"{role!r} has no identity")
    need(_is_text(card.get("scenario")), "'scenario' is no text")
    need(_is_number(card.get("battles")) and _is_interval(card.get("score")), "'battles' or 'score' is no number")
    rows = card.get("rows")
    need(isinstance(rows, list) and len(rows) <= MAX_ROWS, f"'rows' is no list of at most {MAX_ROWS}")
    for row in rows:
        need(isinstance(row, dict) and _is_text(row.get("without")) and row.get("group") in GROUPS, "a row has no name")
        need(
            _is_interval(row.get("score")) and _is_interval(row.get("drop"), -1.0), f"{row['without']!r:.60}: no score"
        )
    found = card.get("statistics")
    need(isinstance(found, dict) and isinstance(found.get("weapons"), dict), "there are no 'statistics' with 'weapons'")
    need(len(found["weapons"]) <= MAX_ROWS, f"more than {MAX_ROWS} weapons")
    tables = {
        "'statistics'": (found, BATTLES),
        **{f"{name!r:.60}": (of, WEAPONS) for name, of in found["weapons"].items()},
    }
    for name, (values, keys) in tables.items():
        need(isinstance(values, dict) and keys.keys() <= values.keys(), f"{name}: expected {', '.join(keys)}")
        need(all(values[key] is None or _is_number(values[key]) for key in keys), f"{name}: expected numbers")
    need(all(map(_is_text, found["weapons"])), "a weapon has no printable name")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_NAME and value.isprintable()


def _is_number(value: Any, low: float = 0.0, high: float = MAX_NUMBER) -> bool:
    return type(value) in (int, float) and low <= value <= high


def _is_interval(value: Any, low: float = 0.0) -> bool:
    ends = ("estimate", "low", "high")
    return isinstance(value, dict) and all(_is_number(value.get(end), low, 1.0) for end in ends)


def against(card: Mapping[str, Any]) -> str:
    """What the player of a card plays against."""
    return "itself" if card["opponent"]["name"] == card["player"]["name"] else str(card["opponent"]["name"])


def sorted_rows(card: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The rows by group, those with the lowest score first."""
    return sorted(card["rows"], key=lambda row: (GROUPS.index(row["group"]), row["score"]["estimate"]))


def format_card(card: Mapping[str, Any]) -> str:
    """The card as text of at most `WIDTH` columns."""
    rest = f" ({card['player']['action_mode']} actions) against {shorten(against(card), 20)}"
    lines = [
        f"{shorten(card['player']['name'], WIDTH - len(rest))}{rest}",
        f"in {shorten(card['scenario'], 44)}, {card['battles']:,} battles a row, in % with 95 % intervals",
        "",
        f"{'without':<{_NAME}}{'score':>{_SHARE}}{'drop':>{_SHARE}}",
        *(
            f"{shorten(row['without'], _NAME - 1):<{_NAME}}"
            + "".join(f"{format_share(row[key]):>{_SHARE}}" for key in ("score", "drop"))
            for row in sorted_rows(card)
        ),
        f"{'(nothing)':<{_NAME}}{format_share(card['score']):>{_SHARE}}",
        "",
    ]
    for key, (label, unit) in BATTLES.items():
        lines.append(f"{label:<58}{format_number(card['statistics'][key], unit):>12} {unit}")
    lines += ["", f"{'weapon':<16}" + "".join(f"{heading:>16}" for heading, _ in WEAPONS.values())]
    for name, of in card["statistics"]["weapons"].items():
        cells = "".join(f"{format_number(of[key], unit):>16}" for key, (_, unit) in WEAPONS.items())
        lines.append(f"{shorten(name, 15):<16}{cells}")
    return "\n".join(lines)
