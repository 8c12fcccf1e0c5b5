"""What happens beside learning: statistics, the progress bar, evaluations, checkpoints, and stopping."""

from echelon_train.callbacks.checkpointing import CheckpointCallback
from echelon_train.callbacks.evaluation import EvaluationCallback
from echelon_train.callbacks.progress import ProgressCallback
from echelon_train.callbacks.statistics import BattleStatistics
from echelon_train.callbacks.stopping import StopCallback

__all__ = ["BattleStatistics", "CheckpointCallback", "EvaluationCallback", "ProgressCallback", "StopCallback"]
