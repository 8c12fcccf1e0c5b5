"""The card of a player: what it uses of the game, and statistics of its battles.

A card has the scores of the player without each of its `ablations`, against the whole player or another opponent.
"""

from echelon_env.evaluate.card.ablations import GROUPS, Ablation, ablate, ablations, named_ablations
from echelon_env.evaluate.card.card import CARD_FILE, CardError, format_card, make_card, read_card, write_card
from echelon_env.evaluate.card.summary import battle_statistics

__all__ = [
    "CARD_FILE",
    "GROUPS",
    "Ablation",
    "CardError",
    "ablate",
    "ablations",
    "battle_statistics",
    "format_card",
    "make_card",
    "named_ablations",
    "read_card",
    "write_card",
]
