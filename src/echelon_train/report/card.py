"""The card of a run's policy: what it uses of the game, and what its battles are like."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from echelon_env.evaluate.card import CARD_FILE, GROUPS, LINES, WEAPON_COLUMNS, CardError, format_number, read_card
from echelon_train.report.format import interval
from echelon_train.report.markup import Html, note, section, table


def card_section(run: Path) -> Html | None:
    """The section of the card in a run's folder; None if it has none."""
    if not (run / CARD_FILE).exists():
        return None
    return section("Card", *_card(run / CARD_FILE))


def _card(path: Path) -> Iterator[Html]:
    try:
        card = read_card(path)
    except (CardError, OSError) as error:
        yield note(f"The card cannot be shown: {error}")
        return
    against = "itself" if card["opponent"] == card["player"]["name"] else card["opponent"]
    yield note(
        f"{card['player']['name']} in {card['scenario']} against {against}, {card['battles']} battles a row. A row is "
        "the player without one thing. Its worth is the whole player's score minus that without it. Intervals: 95 %."
    )
    rows = [
        [row["thing"], row["group"], *(interval(*(row[key][end] for end in _ENDS)) for key in ("score", "worth"))]
        for row in sorted(card["rows"], key=lambda row: (GROUPS.index(row["group"]), row["score"]["estimate"]))
    ]
    yield table(["without", "group", "score, %", "worth, %"], rows, name="card")
    found = card["anatomy"]
    lines = [[label, format_number(found[key], unit), unit] for key, (label, unit) in LINES.items()]
    yield table(["battles", "", ""], lines, name="anatomy")
    weapons = [
        [name, *(format_number(of[key], "%" if "%" in heading else "") for key, heading in WEAPON_COLUMNS.items())]
        for name, of in found["weapons"].items()
    ]
    yield table(["weapon", *WEAPON_COLUMNS.values()], weapons, name="card-weapons")


_ENDS = ("estimate", "low", "high")
