"""Fights in which mechs are hot, fallen, without charges or dead, for tests that depend on the state of mechs."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from echelon_env import BattleEngine
from echelon_env.config.catalog import DEFAULT_CATALOG
from echelon_env.engine.geometry import cosine_sine
from echelon_env.engine.state import NO_MECH
from echelon_env.layout.observations import STREAMS, Self
from oracles.configs import ALL_OFF, odd_config, small_config
from oracles.situations import brawling_actions, gather, rough_voxels, set_voxels
from oracles.stirring import kill_some, stir
from oracles.world import load

TURRETS = tuple(replace(kind, top_speed=0.0, turn_rate=0.0) for kind in DEFAULT_CATALOG.mech_classes[:2])
CONFIGS = {
    "game": small_config(max_steps=6),
    "odd": odd_config(max_steps=6),
    "disabled": odd_config(max_steps=6, abilities=ALL_OFF),
    "lame": small_config(
        max_steps=6,
        physics={"legged_speed": 0.0},
        catalog=replace(DEFAULT_CATALOG, mech_classes=TURRETS + DEFAULT_CATALOG.mech_classes[2:]),
    ),
}
"""The last decision of a fight is one of a battle that is over. In "lame" some mechs cannot walk or turn."""

COMMANDS = ("throttle", "strafe", "jet", "turn", "trigger", "vent", "radiates", "display")
"""Fields of MECH that store the command itself, whether it has an effect or not."""

ECHOES = [STREAMS["self"].start + feature for feature in Self if feature.name.startswith("BY_")]
"""Entries of the observation that show the mech its own command."""


def fight(engine: BattleEngine, seed: int, decisions: int = 7) -> Iterator[np.random.Generator]:
    """Play battles from random states with all mechs close together. Yields a generator before every decision."""
    rng = np.random.default_rng(seed)
    config, state = engine.config, engine.state
    engine.reset(rng.integers(0, 2**63, engine.num_battles))
    for battle in range(engine.num_battles):
        set_voxels(
            state, battle, rough_voxels(rng, config.terrain.size, config.terrain.height), config.catalog.materials
        )
        gather(state, battle, config, rng, 14.0)
        stir(state, battle, config, rng)
        kill_some(state, battle, config, rng, 1)
        for mech in state.mechs[battle]:  # the facing of a yaw to the last bit, as the engine has it
            mech["facing_x"], mech["facing_y"] = cosine_sine(mech["yaw"])
    for decision in range(decisions):
        yield rng
        engine.step(np.stack([brawling_actions(load(state, b, config), rng) for b in range(engine.num_battles)]))
        if decision < decisions - 2:
            disable_some(engine, rng)


def disable_some(engine: BattleEngine, rng: np.random.Generator) -> None:
    """Set heat, shutdowns, falls, cooldowns and charges at random, for durations of about a decision."""
    mechs, ticks = engine.state.mechs, engine.config.decision_repeat
    classes = engine.tables.classes[mechs["mech_class"]]
    living, any_mech = mechs["alive"] != 0, mechs["alive"].shape
    hot = living & (rng.random(any_mech) < 0.3)
    threshold = engine.config.physics.restart_heat * classes["heat_capacity"]
    mechs["heat"] = np.where(hot, threshold + rng.uniform(-1, 20, any_mech), mechs["heat"])
    mechs["shutdown"] = hot
    down = living & (rng.random(any_mech) < 0.2)
    mechs["fallen"] = np.where(down, rng.integers(1, 2 * ticks + 1, any_mech), 0)
    mechs["stability"] = np.where(down, 0.0, np.maximum(1.0, mechs["stability"]))
    some = rng.random(mechs["cooldown"].shape) < 0.5
    mechs["cooldown"] = np.where(some, rng.integers(0, 2 * ticks + 1, some.shape), 0)
    mechs["charges"] = rng.integers(0, 3, some.shape)


def without_commands(engine: BattleEngine, *more: str) -> dict[str, bytes]:
    """All arrays of an engine by name, without the commands, their echoes and other fields of MECH."""
    arrays = engine.snapshot() | {"observations": engine.observations.copy()}
    for name in (*COMMANDS, *more):
        arrays["mechs"][name] = NO_MECH
    arrays["observations"][..., ECHOES] = 0
    return {name: array.tobytes() for name, array in arrays.items()}
