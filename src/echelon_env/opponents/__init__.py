"""Scripted players that read observations only, mixtures of them, and handicaps for any player."""

from collections.abc import Mapping

from echelon_env.config import BattleConfig
from echelon_env.opponents.handicap import Handicap
from echelon_env.opponents.mixture import Mixture
from echelon_env.opponents.policy import FunctionPolicy, Policy, PolicyFunction, PolicyLike
from echelon_env.opponents.scripted import Scripted
from echelon_env.opponents.skill import LEVELS, Skill
from echelon_env.schema import check_seed, nearest_name


def make(
    level: str | Mapping[str, float],
    seed: int = 0,
    config: BattleConfig | None = None,
    *,
    reaction_delay: float = 0.0,
    aim_error: float = 0.0,
    fire_rate: float = 1.0,
) -> Policy:
    """A scripted player for any number of mechs.

    Parameters
    ----------
    level
        One of `LEVELS`, or weights of several: then each battle is played at one of them, see `Mixture`.
    seed
        What the player's own choices are drawn from; the same seed plays the same.
    config
        The battle's configuration: a player knows the rules (how long a decision is, what its sensors' scales are),
        as any would, and nothing of a battle's state. The default is that of the scenario `battle`; needed where the
        rules or the map's size differ from those.
    reaction_delay
        Seconds by which it acts late, from 0 to 10.
    aim_error
        Standard deviation of the directions at which it believes enemies to be, radians from 0 to pi.
    fire_rate
        Rate of fire as a share of what its weapons could do, from 0 to 1.

    Returns
    -------
    Policy
        A `Scripted`, or a `Mixture` for weights; with any of the last three, that in a `Handicap`, which has them as
        attributes to be changed at any time.

    Raises
    ------
    ValueError
        For an unknown name, with the nearest valid one, for impossible weights, for a number out of its range, and for
        a seed that is no integer in [0, 2**64).

    >>> make("novice", seed=1)
    Scripted('novice', seed=1)
    >>> make({"novice": 3, "expert": 1})
    Mixture({'novice': 3.0, 'expert': 1.0}, seed=0)
    >>> make("expert", fire_rate=0.5)
    Handicap(Scripted('expert', seed=0), reaction_delay=0.0, aim_error=0.0, fire_rate=0.5)
    """
    seed, config = check_seed(seed), config or BattleConfig()
    policy: Policy
    if isinstance(level, Mapping):
        policy = Mixture(level, seed, config)
    elif isinstance(level, str) and level in LEVELS:
        policy = Scripted(level, seed, config)
    else:
        raise ValueError(f"unknown opponent {level!r}{nearest_name(str(level), LEVELS)}")
    handicap = Handicap(policy, config, seed, reaction_delay=reaction_delay, aim_error=aim_error, fire_rate=fire_rate)
    return policy if (reaction_delay, aim_error, fire_rate) == (0.0, 0.0, 1.0) else handicap


__all__ = [
    "LEVELS",
    "FunctionPolicy",
    "Handicap",
    "Mixture",
    "Policy",
    "PolicyFunction",
    "PolicyLike",
    "Scripted",
    "Skill",
    "make",
]
