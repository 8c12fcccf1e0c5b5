"""Kinds of players that the trainer adds to commands such as `echelon evaluate`."""

from __future__ import annotations

from echelon_env.config.schema import ConfigError
from echelon_env.evaluate.players import Player
from echelon_train.errors import TrainError


def checkpoint(folder: str, seed: int, *, deterministic: bool) -> Player:
    """The policy of a checkpoint folder, or of a run's last checkpoint. Raises ConfigError if there is none."""
    from echelon_train.checkpoints.players import checkpoint_player  # imports torch, which takes seconds

    try:
        return checkpoint_player(folder, deterministic=deterministic)
    except TrainError as error:
        raise ConfigError(str(error)) from None


def untrained(argument: str, seed: int, *, deterministic: bool) -> Player:
    """A network with random weights, which follow from the seed. Raises ConfigError if it is given an argument."""
    from echelon_train.checkpoints.players import untrained_player

    if argument:
        raise ConfigError(f"untrained: takes no argument, got {argument!r}")
    return untrained_player(seed, deterministic=deterministic)
