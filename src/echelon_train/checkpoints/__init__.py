"""Checkpoints of policies, their provenance, and players of policies in memory."""

from echelon_train.checkpoints.checkpoint import (
    Checkpoint,
    TrainingState,
    load_checkpoint,
    load_training_state,
    save_checkpoint,
)
from echelon_train.checkpoints.players import network_player, untrained_player

__all__ = [
    "Checkpoint",
    "TrainingState",
    "load_checkpoint",
    "load_training_state",
    "network_player",
    "save_checkpoint",
    "untrained_player",
]
