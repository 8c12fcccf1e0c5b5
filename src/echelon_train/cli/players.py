"""Kinds of players that the trainer adds to commands such as `echelon evaluate`."""

from __future__ import annotations

from echelon_env.config.schema import ConfigError
from echelon_env.evaluate.networks import checkpoint_player
from echelon_env.evaluate.players import ActionMode, Player
from echelon_train.errors import TrainError


def checkpoint(name: str, seed: int, *, action_mode: ActionMode) -> Player:
    """The policy that a name means, see `find_policy`, called as typed. Raises ConfigError if there is none."""
    from echelon_train.league.store.policies import find_policy

    try:
        return checkpoint_player(find_policy(name), name=name, action_mode=action_mode)
    except (TrainError, OSError) as error:
        raise ConfigError(str(error)) from None


def untrained(argument: str, seed: int, *, action_mode: ActionMode) -> Player:
    """A network with random weights, which follow from the seed. Raises ConfigError if it is given an argument."""
    from echelon_train.checkpoints.players import untrained_player

    if argument:
        raise ConfigError(f"untrained: takes no argument, got {argument!r}")
    return untrained_player(seed, action_mode=action_mode)
