"""The card of a run's policy: what it uses of the game, and statistics of its battles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from echelon_env.evaluate.card import CARD_FILE, CardError, read_card
from echelon_env.evaluate.card.card import against, sorted_rows
from echelon_env.evaluate.card.summary import BATTLES, WEAPONS, format_number
from echelon_train.report.format import interval
from echelon_train.report.markup import Html, note, section, table


def card_section(run: Path, steps: int) -> Html | None:
    """The section of the card in the folder of a run of so many decisions; None if it has none."""
    if not (run / CARD_FILE).exists():
        return None
    return section("Card", *_card(run / CARD_FILE, steps))


def _card(path: Path, steps: int) -> Iterator[Html]:
    try:
        card = read_card(path)
    except (CardError, OSError) as error:
        yield note(f"The card cannot be shown: {error}")
        return
    player = card["player"]
    of = player["identity"].get("steps", "unknown")
    yield note(
        f"{player['name']}, after {of} decisions, {player['action_mode']} actions, in {card['scenario']} against "
        f"{against(card)}, {card['battles']:,} battles a row. A row is the player without something. Its drop is the "
        "whole player's score minus that without it. Intervals: 95 %."
    )
    if of != steps:
        yield note(f"The run has {steps:,} decisions: this is the card of another policy.")
    rows = [
        [row["without"], row["group"], *(interval(*(row[key][end] for end in _ENDS)) for key in ("score", "drop"))]
        for row in sorted_rows(card)
    ]
    yield table(["without", "group", "score, %", "drop, %"], rows, name="card")
    found = card["statistics"]
    numbers = [[label, format_number(found[key], unit), unit] for key, (label, unit) in BATTLES.items()]
    yield table(["battles", "", ""], numbers, name="card-battles")
    weapons = [
        [name, *(format_number(of_weapon[key], unit) for key, (_, unit) in WEAPONS.items())]
        for name, of_weapon in found["weapons"].items()
    ]
    yield table(["weapon", *(heading for heading, _ in WEAPONS.values())], weapons, name="card-weapons")


_ENDS = ("estimate", "low", "high")
