"""Checkpoints of policies, their provenance, and players that load them."""

from echelon_train.checkpoints.checkpoint import (
    Checkpoint,
    TrainingState,
    find_checkpoint,
    load_checkpoint,
    load_training_state,
    save_checkpoint,
)
from echelon_train.checkpoints.players import checkpoint_player, network_player, untrained_player

__all__ = [
    "Checkpoint",
    "TrainingState",
    "checkpoint_player",
    "find_checkpoint",
    "load_checkpoint",
    "load_training_state",
    "network_player",
    "save_checkpoint",
    "untrained_player",
]
