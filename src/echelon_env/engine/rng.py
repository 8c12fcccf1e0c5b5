"""Counter-based random numbers: every draw is a function of the battle's seed and of its purpose.

There is no stream to advance. So a draw depends neither on other draws nor on the mech's team or its index in an array.
The function is two rounds of the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
generators", OOPSLA 2014): ``mix(seed + mix((key + 1) * GOLDEN))``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from echelon_env.engine.geometry import PI, cosine_sine, log1p
from echelon_env.engine.kernels import integer, kernel

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_30, _SHIFT_27, _SHIFT_31, _SHIFT_11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_TICK_SHIFT, _PLACE_SHIFT = np.uint64(24), np.uint64(8)

# Purposes of draws. AIM is the first of four, one per mount.
MOVE_ORDER, FIRST_TEAM, AIM = map(integer, range(3))
INTERCEPTION, WRECKAGE, RUBBLE = map(integer, range(6, 9))


@kernel
def _mix(z: Any) -> Any:
    z = (z ^ (z >> _SHIFT_30)) * _MIX_1
    z = (z ^ (z >> _SHIFT_27)) * _MIX_2
    return z ^ (z >> _SHIFT_31)


@kernel
def random_bits(seed: Any, tick: int, place: int, purpose: int) -> Any:
    """64 random bits for a tick, a spawn place (below 65,536) and a purpose (below 256)."""
    key = (np.uint64(tick) << _TICK_SHIFT) ^ (np.uint64(place) << _PLACE_SHIFT) ^ np.uint64(purpose)
    return _mix(np.uint64(seed) + _mix((key + np.uint64(1)) * GOLDEN))


@kernel
def random_unit(seed: Any, tick: int, place: int, purpose: int) -> float:
    """A uniform float64 in [0, 1)."""
    return float(random_bits(seed, tick, place, purpose) >> _SHIFT_11) * (1.0 / 9007199254740992.0)


@kernel
def random_normal(seed: Any, tick: int, place: int, purpose: int) -> float:
    """A standard normal float64 (Box and Muller 1958), from the uniform ones of this place and the next."""
    share = 1.0 - random_unit(seed, tick, place, purpose)  # in (0, 1]
    cosine, _ = cosine_sine(2.0 * PI * random_unit(seed, tick, place + 1, purpose))
    return math.sqrt(2.0 * log1p(1.0 / share - 1.0)) * cosine


@kernel
def random_below(seed: Any, tick: int, place: int, purpose: int, limit: int) -> int:
    """A uniform integer in [0, limit)."""
    return int(random_unit(seed, tick, place, purpose) * limit)


@kernel
def random_unit_of_voxel(seed: Any, tick: int, voxel: int, purpose: int) -> float:
    """A uniform float64 in [0, 1) for a voxel's flat index, which may be too large for a spawn place."""
    return random_unit(random_bits(seed, tick, 0, purpose), voxel >> 16, voxel & 0xFFFF, purpose)


@kernel
def sequence_seed(seed: Any, episode: int) -> Any:
    """The uint64 of `episode_seed`."""
    if episode == 0:
        return np.uint64(seed)
    return _mix(np.uint64(seed) + _mix(np.uint64(episode) * GOLDEN)) >> np.uint64(1)


def episode_seed(seed: int, episode: int) -> int:
    """Seed of a slot's battle number `episode`: the slot's own seed for 0, else a hash of both, below 2**63."""
    with np.errstate(over="ignore"):
        return int(sequence_seed(seed, episode))
