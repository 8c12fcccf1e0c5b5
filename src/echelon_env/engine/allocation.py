"""Array capacities, which follow from the rosters and the catalogue, and the allocation of the state."""

from __future__ import annotations

import math
import os

import numpy as np

from echelon_env.config.battle import PACK, REWARD_COMPONENTS, BattleConfig
from echelon_env.config.catalog import MOUNTS, Weapon, flight_ticks
from echelon_env.config.schema import ConfigError
from echelon_env.engine.state import (
    BATTLE,
    BLOCK,
    BLOCK_SIDE,
    BURST,
    CLOUD,
    EVENT,
    MECH,
    OTHERS,
    PAINT_MARK,
    PROJECTILE,
    SIGHTING,
    STATISTICS,
    TEAM,
    USED,
    WALK,
    Outputs,
    State,
)
from echelon_env.layout.observations import CONTACT_ROWS, EGO_SIDE, INTEL_ROWS, Contact

MAX_RECORDS = 1_000_000
"""Largest allowed capacity for projectiles, for smoke clouds, and for events of a decision."""


def pack_counts(config: BattleConfig) -> tuple[int, int]:
    """Numbers of packs of (blue, red). Blue's packs come first in `State.paint`."""
    blue, red = (-(-len(roster) // len(PACK)) for roster in config.rosters)
    return blue, red


def max_projectiles(config: BattleConfig) -> int:
    """Most projectiles in flight at once: every mount fires as often as it can and nothing is hit."""
    return max(1, sum(mounts * _in_flight(config, weapon) for weapon, mounts in _mounted(config)))


def _in_flight(config: BattleConfig, weapon: Weapon) -> int:
    """Most projectiles of one mount in flight at once."""
    if not weapon.flight_rules.projectile:
        return 0
    return flight_ticks(weapon, config.dt) // config.ticks(weapon.cooldown) + 1


def max_clouds(config: BattleConfig) -> int:
    """Most smoke clouds at once."""
    total = 0
    for weapon, mounts in _mounted(config):
        if weapon.smoke_radius > 0:
            spread = config.ticks(weapon.smoke_duration) + flight_ticks(weapon, config.dt)
            most = spread // config.ticks(weapon.cooldown) + 1
            total += mounts * (min(most, weapon.charges) if weapon.charges else most)
    return max(1, total)


def max_events(config: BattleConfig) -> int:
    """Most events in one decision: every mount fires whenever it is ready and everything hits all mechs.

    A shot is one event; its hit and its paint are one each. A projectile's end is two events (a hit and an impact, or
    an interception), and its splash one per mech. In a tick a mech can shut down or restart, rise, fall and burn. Once
    in a decision it can lose its legs and die.
    """
    total = config.num_mechs * (4 * config.decision_repeat + 2)
    for weapon, mounts in _mounted(config):
        shots = config.decision_repeat // config.ticks(weapon.cooldown) + 1
        ends = shots + _in_flight(config, weapon)
        total += mounts * (shots + ends * (3 + (config.num_mechs if weapon.splash_radius > 0 else 0)))
    return total


def _mounted(config: BattleConfig) -> list[tuple[Weapon, int]]:
    """The catalogue's weapons, each with its number of mounts in both teams."""
    fitted = {mech_class.name: mech_class for mech_class in config.mech_classes}
    classes = [fitted[name] for name in (*config.blue, *config.red)]
    return [
        (weapon, sum(getattr(mech_class, mount) == weapon.name for mech_class in classes for mount in MOUNTS))
        for weapon in config.catalog.weapons
    ]


def allocate(config: BattleConfig, num_battles: int) -> State:
    """Zeroed state arrays for `num_battles` battles.

    Raises `ConfigError` for a capacity above `MAX_RECORDS`, and for more bytes than the machine has memory.
    """
    for what, number in (
        ("projectiles in flight", max_projectiles(config)),
        ("smoke clouds", max_clouds(config)),
        ("events in a decision", max_events(config)),
    ):
        if number > MAX_RECORDS:
            raise ConfigError(
                f"a battle of this configuration can hold {number} {what}, expected at most {MAX_RECORDS}: "
                "give its weapons longer cooldowns, shorter flights or shorter smoke, or agents more frequent decisions"
            )
    needed = num_battles * sum(array.nbytes for array in _zeros(config, 1))
    if needed > _memory():
        raise ConfigError(
            f"{num_battles} battles of this configuration need {needed / 2**30:.1f} GiB, more than this machine has"
        )
    return _zeros(config, num_battles)


def _memory() -> float:
    """Bytes of memory of the machine; infinity where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def _zeros(config: BattleConfig, num_battles: int) -> State:
    mechs, size, height = config.num_mechs, config.terrain.size, config.terrain.height
    weapons, projectiles, blocks = len(config.catalog.weapons), max_projectiles(config), -(-size // int(BLOCK_SIDE))
    return State(
        mechs=np.zeros((num_battles, mechs), MECH),
        teams=np.zeros((num_battles, 2), TEAM),
        battles=np.zeros(num_battles, BATTLE),
        projectiles=np.zeros((num_battles, projectiles), PROJECTILE),
        clouds=np.zeros((num_battles, max_clouds(config)), CLOUD),
        bursts=np.zeros((num_battles, projectiles), BURST),
        paint=np.zeros((num_battles, sum(pack_counts(config)), mechs), PAINT_MARK),
        sightings=np.zeros((num_battles, sum(pack_counts(config)), mechs), SIGHTING),
        statistics=np.zeros((num_battles, mechs), STATISTICS),
        shots=np.zeros((num_battles, mechs, weapons), np.int32),
        hits=np.zeros((num_battles, mechs, weapons), np.int32),
        events=np.zeros((num_battles, max_events(config)), EVENT),
        order=np.zeros((num_battles, mechs), np.int16),
        move_order=np.zeros((num_battles, mechs), np.int16),
        near=np.zeros((num_battles, mechs, mechs), np.int16),
        walks=np.zeros((num_battles, mechs), WALK),
        blocks=np.zeros((num_battles, blocks, blocks), BLOCK),
        ego=np.zeros((num_battles, 3, EGO_SIDE**2), np.uint32),
        looks=np.zeros((num_battles, mechs, len(Contact)), np.float32),
        others=np.zeros((num_battles, 4 * OTHERS), np.float64),
        ranks=np.zeros((num_battles, 2, max(CONTACT_ROWS, INTEL_ROWS)), np.float64),
        pending=np.zeros((num_battles, mechs, 4), np.float64),
        visible=np.zeros((num_battles, mechs, mechs), np.int8),
        blockers=np.zeros((num_battles, mechs, mechs, 2), np.int16),
        used=np.zeros(num_battles, USED),
        voxels=np.zeros((num_battles, height, size, size), np.uint8),
        voxel_damage=np.zeros((num_battles, height, size, size), np.uint16),
        opaque=np.zeros((num_battles, size, size), np.uint32),
        solid=np.zeros((num_battles, size, size), np.uint32),
        hazard=np.zeros((num_battles, size, size), np.uint32),
    )


def allocate_outputs(battles: int, mechs: int) -> Outputs:
    """Zeroed outputs of a step."""
    return Outputs(
        rewards=np.zeros((battles, mechs), np.float32),
        components=np.zeros((battles, mechs, len(REWARD_COMPONENTS)), np.float32),
        terminated=np.zeros((battles, mechs), np.bool_),
        truncated=np.zeros((battles, mechs), np.bool_),
    )
