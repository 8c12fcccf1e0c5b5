"""Steps of 1 m with obstacles: low ceilings, a mech overhead or on the ledge, the top of the map."""

import math
from collections import Counter

import numpy as np
import pytest

from echelon_env.config.catalog import AIR, CONCRETE, DEFAULT_CATALOG, FOLIAGE, GLASS
from echelon_env.config.scenario import make_config
from echelon_env.engine.core import BattleEngine
from echelon_env.layout.actions import Action
from oracles.compare import play
from oracles.configs import ODD_CATALOG
from oracles.situations import Random, put_mech, set_voxels
from oracles.world import load

BATTLES = 16
SIZE, HEIGHT = 32, 8
PARKED = 4.0  # a corner of open ground


PAIRS = (
    (DEFAULT_CATALOG, "medium", "scout"),
    (DEFAULT_CATALOG, "light", "light"),
    (DEFAULT_CATALOG, "heavy", "medium"),
    (ODD_CATALOG, "scout", "light"),
    (ODD_CATALOG, "scout", "digger"),
    (ODD_CATALOG, "light", "scout"),
)


def arrange(engine: BattleEngine, battle: int, rng: Random) -> None:
    """Mech 0 stands before a step along x or y. Mech 1 stands on its head, on the ledge or elsewhere."""
    world = load(engine.state, battle, engine.config)
    walker, other = world.mechs
    level = int(rng.choice([0, 1, 2, HEIGHT - math.ceil(walker.kind.height)]))
    edge = int(rng.integers(12, 20))
    voxels = np.full((HEIGHT, SIZE, SIZE), AIR, np.uint8)
    voxels[:level, :, 8:] = CONCRETE
    voxels[level, :, edge:] = rng.choice([CONCRETE, GLASS])
    ceiling = level + math.ceil(walker.kind.height) + int(rng.integers(0, 2))
    if rng.random() < 0.6 and ceiling < HEIGHT:
        voxels[ceiling, 16, edge + rng.choice([-3, -3, -2, -1, 0])] = rng.choice([CONCRETE, CONCRETE, FOLIAGE])
    reach = walker.kind.top_speed * engine.config.dt
    walker.x = edge - walker.kind.length / 2 - rng.choice([0.0, rng.uniform(0, 0.9 * reach)])
    walker.y, walker.z = 16.5, float(level)
    where = rng.choice(["overhead", "tail", "underfoot", "ledge", "away", "away"])
    if where == "overhead":
        other.x, other.y, other.z = walker.x - 0.5, 16.5, walker.z + walker.kind.height
    elif where == "tail":  # the walker would move away under it
        other.x, other.y = walker.box[0][0] + rng.uniform(0, reach) - other.kind.length / 2, 16.5
        other.z = walker.z + walker.kind.height
    elif where == "underfoot":
        other.x, other.y, other.z = walker.x - 0.3, 16.5, float(level)
        other.x -= max(0.0, other.box[1][0] - edge)
        walker.z += other.kind.height
        voxels[level:, :, :edge] = AIR
        voxels[: math.floor(walker.z) + 1, :, edge:] = CONCRETE
    else:
        other.x, other.y, other.z = edge + other.kind.length / 2 + rng.uniform(0, 0.5), 16.5, level + 1.0
    if walker.z + walker.kind.height > HEIGHT:
        walker.z = float(level)
        other.x, other.y, other.z = PARKED, PARKED, 0.0
    if where == "away" or other.z + other.kind.height > HEIGHT:
        other.x, other.y, other.z = PARKED, PARKED, 0.0
    walker.yaw, other.yaw = 0.0, math.pi / 2
    if rng.random() < 0.5:  # the same along y
        voxels = voxels.swapaxes(1, 2)
        walker.x, walker.y = walker.y, walker.x + (walker.kind.length - walker.kind.width) / 2
        other.x, other.y = other.y, other.x
        walker.yaw, other.yaw = math.pi / 2, 0.0
    for mech in world.mechs:
        mech.on_ground = True
        put_mech(engine.state, battle, mech)
    set_voxels(engine.state, battle, np.ascontiguousarray(voxels), engine.config.catalog.materials)


@pytest.mark.long
def test_steps():
    rng = np.random.default_rng(5)
    cases: Counter[str] = Counter()
    for catalog, walker, other in PAIRS:
        config = make_config(
            "duel",
            blue=(walker,),
            red=(other,),
            catalog=catalog,
            decision_repeat=1,
            terrain={"size": SIZE, "height": HEIGHT},
        )
        engine = BattleEngine(config, BATTLES)
        actions = np.zeros((BATTLES, 2, engine.action_dim), np.float32)
        actions[:, 0, Action.THROTTLE] = 1
        for seed in range(6):
            engine.reset(np.arange(BATTLES) + seed * BATTLES)
            for battle in range(BATTLES):
                arrange(engine, battle, rng)
            for _ in range(2):
                decisions, found = play(engine, actions)
                assert not found, "\n".join(found[:20])
                for decision in decisions:
                    cases += decision.after.cases
    reasons = (
        "None",
        "the map's height",
        "terrain above",
        "a mech above",
        "terrain on the ledge",
        "a mech on the ledge",
    )
    assert min(cases[f"step: {reason}"] for reason in reasons) > 1, sorted(cases.items())
    assert cases["stopped at terrain"] > 50
    assert cases["stepped up by less than a metre"] > 5


@pytest.mark.parametrize("on_ground", [False, True])
def test_only_a_standing_mech_steps_up(on_ground):
    config = make_config("duel", decision_repeat=1, terrain={"size": SIZE, "height": HEIGHT})
    engine = BattleEngine(config)
    engine.reset([0])
    voxels = np.full((HEIGHT, SIZE, SIZE), AIR, np.uint8)
    voxels[0, :, 16:] = CONCRETE
    set_voxels(engine.state, 0, voxels)
    walker = load(engine.state, 0, config).mechs[0]
    walker.x, walker.y, walker.z, walker.yaw, walker.on_ground = 14.75, 16.5, 0.0 if on_ground else 0.5, 0.0, on_ground
    put_mech(engine.state, 0, walker)
    actions = np.zeros((1, 2, engine.action_dim), np.float32)
    actions[0, 0, Action.THROTTLE] = 1
    _, found = play(engine, actions)
    assert not found, "\n".join(found)
    mech = engine.state.mechs[0, 0]
    if on_ground:
        assert (mech["x"], mech["z"]) == (pytest.approx(14.75 + 5.5 * 0.05), 1.0)
    else:
        assert mech["x"] == 14.75
        assert mech["z"] < 0.5
