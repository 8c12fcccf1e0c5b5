"""Wrappers for any PettingZoo parallel environment. Gymnasium and PettingZoo have no such wrappers.

`wrappers.single` and `wrappers.vector` have the two that normalize for Gymnasium's environments.
"""

from echelon_env.wrappers.moments import RunningMoments
from echelon_env.wrappers.normalize import NormalizeObservations, NormalizeRewards
from echelon_env.wrappers.team import TeamVersusPolicy

__all__ = [
    "NormalizeObservations",
    "NormalizeRewards",
    "RunningMoments",
    "TeamVersusPolicy",
]
