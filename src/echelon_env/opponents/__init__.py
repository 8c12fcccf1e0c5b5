"""Scripted players that read observations only."""

from echelon_env.config import BattleConfig
from echelon_env.opponents.policy import Policy
from echelon_env.opponents.scripted import Novice, Scripted, Trivial
from echelon_env.schema import nearest_name

LEVELS = {"trivial": Trivial, "novice": Novice}
"""The scripted levels, weakest first."""


def make(name: str, seed: int = 0, decision_seconds: float = BattleConfig().decision_seconds) -> Scripted:
    """A scripted player of a level for any number of mechs.

    Parameters
    ----------
    name
        One of `LEVELS`.
    seed
        What the player's own choices are drawn from; the same seed plays the same.
    decision_seconds
        Seconds of battle between two decisions, so that the player can keep time.

    Raises
    ------
    ValueError
        For an unknown name, with the nearest valid one.

    >>> make("novice", seed=1)
    Novice(seed=1)
    """
    if name not in LEVELS:
        raise ValueError(f"unknown opponent {name!r}{nearest_name(name, LEVELS)}")
    return LEVELS[name](seed, decision_seconds)


__all__ = ["LEVELS", "Novice", "Policy", "Scripted", "Trivial", "make"]
