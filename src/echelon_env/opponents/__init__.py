"""Scripted policies that read observations only, mixtures of them, and handicaps for any policy."""

from collections.abc import Mapping

from echelon_env.config.opponent import Opponent, Opponents, OpponentsLike
from echelon_env.config.scenario import ScenarioLike, make_config
from echelon_env.config.skill import LEVELS, Skill
from echelon_env.opponents.by_name import policy_of
from echelon_env.opponents.handicap import Handicap
from echelon_env.opponents.mixture import Mixture
from echelon_env.opponents.policy import FunctionPolicy, Policy, PolicyFunction, PolicyLike, Resumable
from echelon_env.opponents.scripted import Scripted


def make(
    opponent: OpponentsLike,
    seed: int,
    config: ScenarioLike,
    *,
    num_threads: int = 1,
) -> Policy:
    """The policy of a named opponent, for any number of mechs.

    Parameters
    ----------
    opponent
        A text NAME[@HANDICAP], such as one of `LEVELS`, ``"champion"`` or ``"policy:runs/duel"``, or a mapping of them
        to weights: then one is drawn for each battle, see `Mixture`. docs/guide/opponents.md has the grammar.
    seed
        Seed of the policy's random choices; the same seed gives the same actions.
    config
        The battle's configuration, from which the policy knows the rules (the length of a decision, the scales of
        observations), but not a battle's state. A scenario's name or file, a `BattleConfig` or its dict. A player that
        takes the battle for another one plays badly.
    num_threads
        Threads that share the mechs. Actions do not depend on it.

    Returns
    -------
    Policy
        A `Scripted` or a trained policy; for a mapping a `Mixture`, whose weights can change at any time. With a
        handicap it is in a `Handicap`, whose numbers can change, too.

    Raises
    ------
    ValueError
        For an unknown name, with the nearest valid one, for invalid weights, for a number out of its range, for
        ``self`` and ``auto``, which are for training, for a policy that cannot be loaded (all `ConfigError`), for a
        seed that is not an integer in [0, 2**64), and for an invalid configuration or number of threads
        (`ConfigError`).

    Examples
    --------
    >>> make("novice", 1, "duel")
    Scripted('novice', seed=1)
    >>> make({"novice": 1, "expert": 0}, 0, "duel")
    Mixture({'novice': 1.0}, seed=0)
    >>> make("expert@fire_rate=0.5", 0, "duel")
    Handicap(Scripted('expert', seed=0), reaction_delay=0.0, aim_error=0.0, fire_rate=0.5)
    """
    rules = make_config(config)
    named = Opponents.parse(opponent).check_playable()
    if named.single and not isinstance(opponent, Mapping):
        return policy_of(named.single, seed, rules, num_threads)
    # also those of weight 0
    all_named = map(Opponent.parse, opponent if isinstance(opponent, Mapping) else named.names)
    further = [each.check_playable() for each in all_named if str(each) not in LEVELS]
    others = {str(each): policy_of(each, seed, rules, num_threads) for each in further}
    return Mixture(dict(zip(named.names, named.weights, strict=True)), seed, rules, others, num_threads)


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
