"""The batched battle engine: all rules of the game as compiled kernels over record arrays."""

from echelon_env.engine.core import BattleEngine, NotResetError
from echelon_env.engine.maps import MapPool, Maps
from echelon_env.engine.state import BLUE, DRAW, EVENT_KINDS, EVENT_MEANINGS, REASONS, RED, STATISTICS

__all__ = [
    "BLUE",
    "DRAW",
    "EVENT_KINDS",
    "EVENT_MEANINGS",
    "REASONS",
    "RED",
    "STATISTICS",
    "BattleEngine",
    "MapPool",
    "Maps",
    "NotResetError",
]
