"""Evaluation on held-out maps, each played from both sides, with frozen suites and confidence intervals.

The modules `cross_play`, `report` and `statistics` are not imported here, because they import SciPy's
statistics, which take longer to import than the rest of the package.
"""

from echelon_env.evaluate.matches import Battle, Match, play, play_match
from echelon_env.evaluate.networks import checkpoint_player
from echelon_env.evaluate.players import BASELINES, ActionMode, BattleNoise, Player, baseline, named_player
from echelon_env.evaluate.seeds import (
    EVALUATION_SEEDS,
    TRAINING_SEEDS,
    check_seeds,
    evaluation_seed,
    read_seeds,
    training_map_seed,
    training_seed,
    validation_seed,
)
from echelon_env.evaluate.stamps import stamp
from echelon_env.evaluate.suite import SUITES, Suite, SuiteError, SuiteScenario, freeze_suite, load_suite
from echelon_env.evaluate.tables import format_report
from echelon_env.evaluate.teams import team_of
from echelon_env.networks.weights import CheckpointError

__all__ = [
    "BASELINES",
    "EVALUATION_SEEDS",
    "SUITES",
    "TRAINING_SEEDS",
    "ActionMode",
    "Battle",
    "BattleNoise",
    "CheckpointError",
    "Match",
    "Player",
    "Suite",
    "SuiteError",
    "SuiteScenario",
    "baseline",
    "check_seeds",
    "checkpoint_player",
    "evaluation_seed",
    "format_report",
    "freeze_suite",
    "load_suite",
    "named_player",
    "play",
    "play_match",
    "read_seeds",
    "stamp",
    "team_of",
    "training_map_seed",
    "training_seed",
    "validation_seed",
]
