"""Scripted players that read observations only."""

from echelon_env.config import BattleConfig
from echelon_env.opponents.policy import FunctionPolicy, Policy, PolicyFunction, PolicyLike
from echelon_env.opponents.scripted import Novice, Scripted, Trivial
from echelon_env.schema import check_seed, nearest_name

LEVELS = {"trivial": Trivial, "novice": Novice}
"""The scripted levels, weakest first."""


def make(name: str, seed: int = 0, config: BattleConfig | None = None) -> Scripted:
    """A scripted player of a level for any number of mechs.

    Parameters
    ----------
    name
        One of `LEVELS`.
    seed
        What the player's own choices are drawn from; the same seed plays the same.
    config
        The battle's configuration: a player knows the rules (how long a decision is, what its sensors' scales are),
        as any would, and nothing of a battle's state. The default is that of the scenario `battle`; needed where the
        rules or the map's size differ from those.

    Raises
    ------
    ValueError
        For an unknown name, with the nearest valid one, and for a seed that is no integer in [0, 2**64).

    >>> make("novice", seed=1)
    Novice(seed=1)
    """
    if name not in LEVELS:
        raise ValueError(f"unknown opponent {name!r}{nearest_name(name, LEVELS)}")
    return LEVELS[name](check_seed(seed), config or BattleConfig())


__all__ = [
    "LEVELS",
    "FunctionPolicy",
    "Novice",
    "Policy",
    "PolicyFunction",
    "PolicyLike",
    "Scripted",
    "Trivial",
    "make",
]
