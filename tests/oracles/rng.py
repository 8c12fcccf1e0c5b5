"""The published mixing function in Python's big integers, and the draws from it.

SplitMix64's finaliser: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
"""

from __future__ import annotations

from oracles.world import World

MODULUS = 2**64
GOLDEN = 0x9E3779B97F4A7C15
MOVE_ORDER, AIM, INTERCEPTION, WRECKAGE, RUBBLE = 0, 2, 6, 7, 8  # the purposes of draws; AIM is one for each mount


def mix(z: int) -> int:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % MODULUS
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % MODULUS
    return z ^ (z >> 31)


def random_bits(seed: int, tick: int, place: int, purpose: int) -> int:
    """64 random bits."""
    key = tick * 2**24 + place * 2**8 + purpose
    return mix((seed + mix((key + 1) * GOLDEN % MODULUS)) % MODULUS)


def random_unit(seed: int, tick: int, place: int, purpose: int) -> float:
    """A uniform number in [0, 1), from the upper 53 bits."""
    return (random_bits(seed, tick, place, purpose) >> 11) / 2**53


def random_below(seed: int, tick: int, place: int, purpose: int, limit: int) -> int:
    """A uniform integer in [0, limit), from the upper 53 bits."""
    return (random_bits(seed, tick, place, purpose) >> 11) * limit // 2**53


def random_unit_of_voxel(seed: int, tick: int, voxel: int, purpose: int) -> float:
    """A uniform number in [0, 1) for a voxel's flat index: the bits of the tick seed a second draw."""
    return random_unit(random_bits(seed, tick, 0, purpose), voxel // 2**16, voxel % 2**16, purpose)


def movement_order(world: World) -> list[int]:
    """Indices of the mechs sorted by spawn place, in the movement order of this tick."""
    order = list(range(len(world.mechs)))
    for last in range(len(order) - 1, 0, -1):
        chosen = random_below(world.seed, world.tick, last, MOVE_ORDER, last + 1)
        order[last], order[chosen] = order[chosen], order[last]
    return order
