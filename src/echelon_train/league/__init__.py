"""The league: a population of members, the record of their matches, their ratings, and matchmaking.

Public names are loaded when they are first used: most modules import torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from echelon_train.config.league import LeagueConfig
    from echelon_train.league.errors import LeagueError
    from echelon_train.league.playing.executors import Executor
    from echelon_train.league.playing.replay import replay
    from echelon_train.league.playing.runner import rating_run
    from echelon_train.league.ratings.bradley_terry import bradley_terry
    from echelon_train.league.ratings.cycles import cycle_score
    from echelon_train.league.ratings.glicko2 import Rating
    from echelon_train.league.ratings.payoffs import Payoffs, mispredictions, payoffs
    from echelon_train.league.store.fsck import fsck
    from echelon_train.league.store.members import Member
    from echelon_train.league.store.periods import LeagueSettings
    from echelon_train.league.store.promotion import promote
    from echelon_train.league.store.records import PlayedMatch
    from echelon_train.league.store.registry import League, Standing

__all__ = [
    "Executor",
    "League",
    "LeagueConfig",
    "LeagueError",
    "LeagueSettings",
    "Member",
    "Payoffs",
    "PlayedMatch",
    "Rating",
    "Standing",
    "bradley_terry",
    "cycle_score",
    "fsck",
    "mispredictions",
    "payoffs",
    "promote",
    "rating_run",
    "replay",
]

_NAMES = {
    "config.league": "LeagueConfig",
    "league.errors": "LeagueError",
    "league.playing.executors": "Executor",
    "league.playing.replay": "replay",
    "league.playing.runner": "rating_run",
    "league.ratings.bradley_terry": "bradley_terry",
    "league.ratings.cycles": "cycle_score",
    "league.ratings.glicko2": "Rating",
    "league.ratings.payoffs": "Payoffs mispredictions payoffs",
    "league.store.fsck": "fsck",
    "league.store.members": "Member",
    "league.store.periods": "LeagueSettings",
    "league.store.promotion": "promote",
    "league.store.records": "PlayedMatch",
    "league.store.registry": "League Standing",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"echelon_train.{_MODULES[name]}"), name)
