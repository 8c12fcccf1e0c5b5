"""The card of a player: what it uses of the game, and what its battles are like.

A card has the scores of the player without one thing each, see `ablations`, against the whole player or another
opponent, and the anatomy of the battles of the whole player, see `anatomy`.
"""

from echelon_env.evaluate.card.ablations import GROUPS, Ablation, ablate, ablations
from echelon_env.evaluate.card.anatomy import LINES, anatomy
from echelon_env.evaluate.card.card import (
    CARD_FILE,
    WEAPON_COLUMNS,
    CardError,
    chosen,
    format_card,
    format_number,
    make_card,
    read_card,
    write_card,
)

__all__ = [
    "CARD_FILE",
    "GROUPS",
    "LINES",
    "WEAPON_COLUMNS",
    "Ablation",
    "CardError",
    "ablate",
    "ablations",
    "anatomy",
    "chosen",
    "format_card",
    "format_number",
    "make_card",
    "read_card",
    "write_card",
]
