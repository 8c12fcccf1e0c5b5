"""Callbacks of a run, one in each module."""

from echelon_train.runs.callbacks.battle_totals import BattleTotalsCallback
from echelon_train.runs.callbacks.clock import ClockCallback
from echelon_train.runs.callbacks.curriculum import CurriculumCallback
from echelon_train.runs.callbacks.evaluation import EvaluationCallback
from echelon_train.runs.callbacks.every import EveryCallback
from echelon_train.runs.callbacks.league import LeagueCallback
from echelon_train.runs.callbacks.opponents import OpponentsCallback
from echelon_train.runs.callbacks.progress import ProgressCallback
from echelon_train.runs.callbacks.results import BattleResults
from echelon_train.runs.callbacks.stopping import StopCallback

__all__ = [
    "BattleResults",
    "BattleTotalsCallback",
    "ClockCallback",
    "CurriculumCallback",
    "EvaluationCallback",
    "EveryCallback",
    "LeagueCallback",
    "OpponentsCallback",
    "ProgressCallback",
    "StopCallback",
]
