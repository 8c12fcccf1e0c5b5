"""Policies of named opponents."""

from __future__ import annotations

import dataclasses

from echelon_env.champions import champion_of, champion_player
from echelon_env.config import plugins
from echelon_env.config.battle import BattleConfig
from echelon_env.config.opponent import CHAMPION, HandicapConfig, Opponent
from echelon_env.config.skill import LEVELS
from echelon_env.opponents.handicap import Handicap
from echelon_env.opponents.policy import Policy
from echelon_env.opponents.scripted import Scripted


def policy_of(opponent: Opponent, seed: int, config: BattleConfig, num_threads: int = 1) -> Policy:
    """The policy of an opponent, for any number of mechs. Threads share its mechs.

    ``policy:PATH`` is the policy of the player that the installed packages make of a checkpoint, see
    `plugins.checkpoint_player`; it samples its actions. ``champion`` is that of the battle's champion,
    ``KIND:ARGUMENT`` that of a player that a package adds, see `plugins.player`.

    Raises `ConfigError` for ``self`` and ``auto``, which are for training, and for a policy that cannot be loaded.
    """
    opponent.check_playable()
    if opponent.name == CHAMPION:
        policy: Policy = champion_player(champion_of(config)).policy(config, seed, num_threads)
    elif opponent.name in LEVELS:
        policy = Scripted(opponent.name, seed, config, num_threads)
    elif opponent.path is None:
        policy = plugins.player(opponent.name, seed).policy(config, seed, num_threads)
    else:
        policy = plugins.checkpoint_player(opponent.path, seed).policy(config, seed, num_threads)
    if opponent.handicap == HandicapConfig():
        return policy
    return Handicap(policy, config, seed, **dataclasses.asdict(opponent.handicap))
