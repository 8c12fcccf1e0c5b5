"""Scripted policies that read observations only, mixtures of them, and handicaps for any policy."""

from collections.abc import Mapping

from echelon_env.config.scenario import ScenarioLike, make_config
from echelon_env.opponents.handicap import Handicap
from echelon_env.opponents.mixture import Mixture
from echelon_env.opponents.policy import FunctionPolicy, Policy, PolicyFunction, PolicyLike, Resumable
from echelon_env.opponents.scripted import Scripted
from echelon_env.opponents.skill import LEVELS, Skill


def make(
    level: str | Mapping[str, float],
    seed: int = 0,
    config: ScenarioLike = "battle",
    *,
    reaction_delay: float | None = None,
    aim_error: float | None = None,
    fire_rate: float | None = None,
) -> Policy:
    """A scripted policy for any number of mechs.

    Parameters
    ----------
    level
        One of `LEVELS`, or weights of several: then a level is drawn for each battle, see `Mixture`.
    seed
        Seed of the policy's random choices; the same seed gives the same actions.
    config
        The battle's configuration, from which the policy knows the rules (the length of a decision, the scales of
        observations), but not a battle's state. A scenario's name or file, a `BattleConfig` or its dict; needed if the
        rules or the map's size differ from those of the scenario `battle`.
    reaction_delay
        Delay of its actions in seconds, from 0 to 10.
    aim_error
        Standard deviation of the error in the observed directions of enemies, radians from 0 to pi.
    fire_rate
        Rate of fire as a share of its weapons' maximum, from 0 to 1.

    Returns
    -------
    Policy
        A `Scripted`, or a `Mixture` for weights. If any of the last three is given, even without an effect at first, it
        is wrapped in a `Handicap`, which has them as attributes that can change at any time.

    Raises
    ------
    ValueError
        For an unknown name, with the nearest valid one, for invalid weights, for a number out of its range, for a
        seed that is not an integer in [0, 2**64), and for an invalid configuration (`ConfigError`).

    >>> make("novice", seed=1)
    Scripted('novice', seed=1)
    >>> make({"novice": 3, "expert": 1})
    Mixture({'novice': 3.0, 'expert': 1.0}, seed=0)
    >>> make("expert", fire_rate=0.5)
    Handicap(Scripted('expert', seed=0), reaction_delay=0.0, aim_error=0.0, fire_rate=0.5)
    """
    rules = make_config(config)
    policy = Mixture(level, seed, rules) if isinstance(level, Mapping) else Scripted(level, seed, rules)
    handicaps = {"reaction_delay": reaction_delay, "aim_error": aim_error, "fire_rate": fire_rate}
    given = {name: number for name, number in handicaps.items() if number is not None}
    return Handicap(policy, rules, seed, **given) if given else policy


__all__ = [
    "LEVELS",
    "FunctionPolicy",
    "Handicap",
    "Mixture",
    "Policy",
    "PolicyFunction",
    "PolicyLike",
    "Resumable",
    "Scripted",
    "Skill",
    "make",
]
