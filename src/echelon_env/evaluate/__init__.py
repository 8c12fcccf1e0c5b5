"""Evaluation that can be trusted: held-out maps, each from both sides, on frozen suites, with honest intervals."""

from echelon_env.evaluate.matches import Battle, Match, play, play_match
from echelon_env.evaluate.pictures import save_intervals, save_matrix
from echelon_env.evaluate.players import BASELINES, BattleNoise, Player, baseline
from echelon_env.evaluate.report import make_report, write_report
from echelon_env.evaluate.seeds import (
    EVALUATION_SEEDS,
    TRAINING_SEEDS,
    check_seeds,
    evaluation_seed,
    training_map_seed,
    training_seed,
)
from echelon_env.evaluate.stamps import stamp
from echelon_env.evaluate.statistics import (
    CONFIDENCE,
    CrossPlay,
    Interval,
    cross_play,
    interquartile_mean,
    map_scores,
    probability_of_improvement,
    score_interval,
    stratified_bootstrap,
    wilson,
)
from echelon_env.evaluate.suite import SUITES, Suite, SuiteError, SuiteScenario, freeze_suite, load_suite
from echelon_env.evaluate.tables import format_report

__all__ = [
    "BASELINES",
    "CONFIDENCE",
    "EVALUATION_SEEDS",
    "SUITES",
    "TRAINING_SEEDS",
    "Battle",
    "BattleNoise",
    "CrossPlay",
    "Interval",
    "Match",
    "Player",
    "Suite",
    "SuiteError",
    "SuiteScenario",
    "baseline",
    "check_seeds",
    "cross_play",
    "evaluation_seed",
    "format_report",
    "freeze_suite",
    "interquartile_mean",
    "load_suite",
    "make_report",
    "map_scores",
    "play",
    "play_match",
    "probability_of_improvement",
    "save_intervals",
    "save_matrix",
    "score_interval",
    "stamp",
    "stratified_bootstrap",
    "training_map_seed",
    "training_seed",
    "wilson",
    "write_report",
]
