"""Single ticks from thousands of random states, the engine against the oracle."""

from collections import Counter

import numpy as np
import pytest

from echelon_env.actions import Action
from echelon_env.config import BattleConfig
from echelon_env.engine.core import BattleEngine
from echelon_env.engine.state import RUNNING
from oracles.compare import play
from oracles.sensing import GRAZING
from oracles.situations import (
    Random,
    brawling_actions,
    gather,
    odd_config,
    random_actions,
    rough_voxels,
    set_voxels,
    small_config,
    stir,
)
from oracles.world import load

CONFIGS = {"game": small_config(decision_repeat=1), "odd": odd_config(decision_repeat=1)}
BATTLES = 8

MOVES = {
    "step: None",
    "step: terrain on the ledge",
    "stopped at terrain",
    "stopped at the map's edge",
    "stopped at a mech",
    "stopped at a ceiling",
    "landed",
    "stands above the ground",
    "stands on a mech",
}
FIGHTS = {
    "shut down",
    "restarted",
    "fired at the chosen target",
    "fired at the nearest of several",
    "hit the rear",
    "projectile hit",
    "projectile of the dead hit",
    "projectile spent",
    "projectile stopped",
    "shared kill",
    "overkill",
}


def rearrange(engine: BattleEngine, rng: Random, arena: float, density: float) -> None:
    """New random situations in all battles, half of them with all mechs close to each other."""
    terrain = engine.config.terrain
    for battle in range(engine.num_battles):
        revive(engine, battle)
        set_voxels(engine.state, battle, rough_voxels(rng, terrain.size, terrain.height, density))
        centre = rng.uniform(0, terrain.size, 2)
        engine.state.battles["zone_x"][battle], engine.state.battles["zone_y"][battle] = centre
        gather(engine.state, battle, engine.config, rng, arena if battle % 2 else 3 * arena)
        stir(engine.state, battle, engine.config, rng)


def revive(engine: BattleEngine, battle: int) -> None:
    state = engine.state
    state.mechs["alive"][battle] = 1
    state.teams["mechs_alive"][battle] = len(engine.config.blue), len(engine.config.red)
    state.teams["score"][battle] = 0
    state.battles["over"][battle] = 0
    state.battles["reason"][battle] = RUNNING
    state.battles["step_count"][battle] = 0
    state.battles["num_projectiles"][battle] = 0


def shoot_around(engine: BattleEngine, battle: int, rng: Random, count: int) -> None:
    """Projectiles in flight from and to random places near the mechs; some of their owners are dead."""
    config = engine.config
    straight = [index for index, weapon in enumerate(config.catalog.weapons) if weapon.flight == "straight"]
    mechs = engine.state.mechs[battle]
    for row in engine.state.projectiles[battle][:count]:
        owner, near = rng.integers(0, config.num_mechs, 2)
        weapon = config.catalog.weapons[int(rng.choice(straight))]
        direction = rng.normal(0, 1, 3) * [1, 1, 0.2]
        velocity = direction / np.linalg.norm(direction) * weapon.speed
        height = config.terrain.height
        place = np.array([mechs["x"][near], mechs["y"][near], mechs["z"][near] + 1]) + rng.normal(0, 1.5, 3)
        place = np.clip(place, 0.01, [config.terrain.size - 0.01, config.terrain.size - 0.01, height - 0.01])
        row["x"], row["y"], row["z"] = place
        row["vx"], row["vy"], row["vz"] = velocity
        row["reach"], row["owner"] = rng.uniform(0.01, weapon.range), owner
        row["weapon"] = config.catalog.weapons.index(weapon)
    engine.state.battles["num_projectiles"][battle] = count
    for mech in rng.choice(len(mechs), 2, replace=False):
        team = mechs["team"][mech]
        mechs["alive"][mech] = 0
        mechs["armour"][mech] = mechs["potential"][mech] = 0
        engine.state.teams["mechs_alive"][battle, team] -= 1


def run(config: BattleConfig, seed: int, rounds: int, steps: int, fight: bool) -> Counter[str]:
    """Compare ticks from new situations each round; returns what happened how often."""
    rng = np.random.default_rng(seed)
    engine = BattleEngine(config, BATTLES)
    engine.reset(np.arange(seed, seed + BATTLES))
    cases: Counter[str] = Counter()
    for _ in range(rounds):
        rearrange(engine, rng, arena=10.0, density=0.03 if fight else 0.12)
        for battle in range(0, BATTLES, 2) if fight else ():
            shoot_around(engine, battle, rng, 3)
        for _ in range(steps):
            worlds = [load(engine.state, battle, config) for battle in range(BATTLES)]
            act = brawling_actions if fight else walking_actions
            decisions, found = play(engine, np.stack([act(world, rng) for world in worlds]))
            assert not found, "\n".join(found[:20])
            for decision in decisions:
                cases += decision.after.cases
    assert cases[GRAZING] < rounds * steps * BATTLES / 50
    return cases


def walking_actions(world, rng):
    """Actions of mechs that keep at full speed, many along an axis, and jump often."""
    actions = random_actions(rng, len(world.mechs))
    actions[:, Action.THROTTLE] = rng.choice([1.0, 1.0, -1.0], len(actions))
    actions[:, Action.STRAFE] *= 0.3
    actions[:, Action.JET] = rng.choice([-1.0, 1.0], len(actions))
    actions[:, Action.PRIMARY : Action.VENT] = -1
    return actions


@pytest.mark.parametrize("name", CONFIGS)
def test_movement(name):
    cases = run(CONFIGS[name], seed=1, rounds=8, steps=4, fight=False)
    assert set(cases) >= MOVES, MOVES - set(cases)


@pytest.mark.parametrize("name", CONFIGS)
def test_fighting(name):
    cases = run(CONFIGS[name], seed=2, rounds=12, steps=4, fight=True)
    assert set(cases) >= FIGHTS, FIGHTS - set(cases)
