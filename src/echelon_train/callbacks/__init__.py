"""What happens beside learning: statistics, curriculum, league, progress, curves, evaluations, checkpoints, ends."""

from echelon_train.callbacks.checkpointing import CheckpointCallback
from echelon_train.callbacks.curriculum import CurriculumCallback
from echelon_train.callbacks.curves import CurvesCallback
from echelon_train.callbacks.evaluation import EvaluationCallback
from echelon_train.callbacks.league import LeagueCallback
from echelon_train.callbacks.progress import ProgressCallback
from echelon_train.callbacks.statistics import BattleStatistics
from echelon_train.callbacks.stopping import StopCallback

__all__ = [
    "BattleStatistics",
    "CheckpointCallback",
    "CurriculumCallback",
    "CurvesCallback",
    "EvaluationCallback",
    "LeagueCallback",
    "ProgressCallback",
    "StopCallback",
]
