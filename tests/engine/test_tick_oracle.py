"""Single ticks from many random states, the engine against the oracle."""

from collections import Counter

import numpy as np
import pytest

from echelon_env.config.battle import BattleConfig
from echelon_env.config.catalog import MOUNTS
from echelon_env.engine.core import BattleEngine
from echelon_env.engine.state import EVENT_KINDS, RUNNING
from echelon_env.layout.actions import Action
from oracles.compare import play
from oracles.configs import odd_config, small_config
from oracles.situations import Random, brawling_actions, gather, random_actions, rough_voxels, set_voxels
from oracles.stirring import kill_some, shoot_around, stir
from oracles.world import GRAZING, load

CONFIGS = {
    "game": small_config(decision_repeat=1),
    "odd": odd_config(decision_repeat=1),
    "safe": small_config(decision_repeat=1, combat={"friendly_fire": False}),
}
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
    "walked legged",
    "walked through a slowing voxel",
}
BODIES = {
    "recovers slowly without legs",
    "recovers slowly in motion",
    "recovers slowly under fire",
    "cooled by the ground",
    "heated by the ground",
    "heated by electronics",
    "in several hazards",
    "vented while shut down",
    "at the maximum heat",
    "commanded to radiate both",
    "smoke ended",
    "paint faded",
    "wreck softened",
}
SHOTS = {
    "did not fire: fallen",
    "did not fire: shut down",
    "did not fire: venting",
    "did not fire: no valid target",
    "fired at one of several",
    "only others are valid",
    "kept its target",
    "lost its target",
    "homing fired directly",
    "homing fired by paint",
    "straight without a target",
    "ballistic without a target",
    "paint without the quality for it",
    "smoke in the line",
    "own smoke in the line",
    "fallen in the zone",
}
FLIGHTS = {
    "straight ended: enemy",
    "straight ended: voxel",
    "straight ended: spent",
    "straight ended: bedrock",
    "ballistic ended: enemy",
    "ballistic ended: voxel",
    "ballistic ended: bedrock",
    "ballistic ended: spent",
    "homing ended: enemy",
    "homing ended: voxel",
    "homing ended: aimed point",
    "homing ended: spent",
    "missile in phase 0",
    "missile in phase 1",
    "missile in phase 2",
    "missile dives",
    "missile homes on a dead mech",
    "missile hit a mech other than its target",
    "interception failed",
    "projectile of a dead mech hit",
    "splash shielded",
}
FRIENDLY_FIRE = {"splash on a team-mate", "splash on the shooter", "a share of a kill earns no credit"}
SETTLEMENT = {
    "hit the rear",
    "hit the legs",
    "damage to a painted mech",
    "damage to a helpless mech",
    "heat from enemies at its limit",
    "loses no stability on the ground",
    "a longer suppression stays",
    "shared kill",
    "overkill",
    "assist",
    "no assist for the own kill",
    "painted again",
    "voxel damaged",
    "voxel damaged by several bursts",
    "voxel became debris",
    "voxel became air",
    "destroyed by splash",
    "hard wreck",
    "debris of a dead mech",
    "wreck above the ground",
    "no wreck inside a mech",
}
SENSES = {
    "jammed",
    "helped by ECCM",
    "jammed and helped",
    "lowest quality",
    "observes a missile",
    "observes its own paint",
}
PARTIAL = {
    "seen by paint alone",
    "seen by radar alone",
    "seen by heat alone",
    "seen by radiation alone",
    "hidden by smoke",
    "hidden by terrain",
}
ODD = {
    "forgotten",
    "stopped by plating",
    "seen by full observability alone",
    "painted by two of a pack",
    "highest quality",
    "straight ended: edge",
}
LIMITED = {"did not fire: out of charges"}
DISPLAYS = {
    "sorted by danger, not by distance",
    "sorted by damage, not by distance",
    "no danger from fallen or shut-down mechs",
}
MEMORY = {"aged intel", "no intel without the link", "dead enemies are forgotten"}
RECEIVED = {"intel by a mate's sight", "intel by paint"}
MESSAGES = {
    "own message",
    "message of a pack-mate",
    "silent because it was shut down",
    "silent because it is dead",
}
OBSERVED = {
    "in motion while shut down",
    "hot cell",
    "cool cell",
    "hazard under the ground",
    "hazard overhead",
    "an obstacle under a roof",
}
CONTEST = {
    "kill in a contested zone",
    "kill from outside a contested zone",
    "assist in a contested zone",
    "death in a contested zone",
}
EVERYWHERE = BODIES | SHOTS | FLIGHTS | SETTLEMENT | SENSES | FRIENDLY_FIRE | DISPLAYS | MESSAGES | OBSERVED | CONTEST
FIGHTS = {
    "game": EVERYWHERE | PARTIAL | LIMITED | MEMORY | RECEIVED,
    "odd": EVERYWHERE | ODD | MEMORY | {"team spirit"},
    "safe": {"no splash on a team-mate", "seen by paint alone"},
}


def rearrange(engine: BattleEngine, rng: Random, arena: float, density: float) -> None:
    """New random situations in all battles, in half of them with all mechs close to each other."""
    config, state = engine.config, engine.state
    for battle in range(engine.num_battles):
        revive(engine, battle)
        voxels = rough_voxels(rng, config.terrain.size, config.terrain.height, density)
        set_voxels(state, battle, voxels, config.catalog.materials)
        state.battles["zone_x"][battle], state.battles["zone_y"][battle] = rng.uniform(0, config.terrain.size, 2)
        gather(state, battle, config, rng, arena if battle % 2 else 3 * arena)
        stir(state, battle, config, rng)


def revive(engine: BattleEngine, battle: int) -> None:
    state = engine.state
    state.mechs["alive"][battle] = 1
    state.mechs["wreck_ticks"][battle] = 0
    state.teams["mechs_alive"][battle] = len(engine.config.blue), len(engine.config.red)
    state.teams["score"][battle] = 0
    for name in ("over", "step_count", "num_projectiles"):
        state.battles[name][battle] = 0
    state.battles["reason"][battle] = RUNNING


def run(config: BattleConfig, seed: int, rounds: int, steps: int, fight: bool) -> Counter[str]:
    """Compare ticks from new situations in each round; returns counts of the situations."""
    rng = np.random.default_rng(seed)
    engine = BattleEngine(config, BATTLES)
    engine.reset(np.arange(seed, seed + BATTLES))
    cases: Counter[str] = Counter()
    for _ in range(rounds):
        rearrange(engine, rng, arena=10.0, density=0.03 if fight else 0.12)
        for battle in range(BATTLES) if fight else ():
            kill_some(engine.state, battle, config, rng, 2)
            shoot_around(engine.state, battle, config, rng, 12)
        for _ in range(steps):
            worlds = [load(engine.state, battle, config) for battle in range(BATTLES)]
            act = fighting_actions if fight else walking_actions
            decisions, found = play(engine, np.stack([act(world, rng) for world in worlds]))
            assert not found, "\n".join(found[:20])
            for decision in decisions:
                decision.after.cases["played"] += 1
                decision.after.cases["uncompared"] += decision.after.cases[GRAZING] > 0
                cases += decision.after.cases
                cases.update(EVENT_KINDS[event[0]] for event in decision.after.log)
    assert (engine.state.battles["lost_events"] == 0).all()
    assert cases["uncompared"] < 0.05 * cases["played"]
    return cases


def fighting_actions(world, rng):
    """Brawling actions with more triggers and emitters on."""
    actions = brawling_actions(world, rng)
    first = Action.PRIMARY
    pulled = rng.random((len(actions), len(MOUNTS))) < 0.5
    actions[:, first : first + len(MOUNTS)] = np.where(pulled, 1, actions[:, first : first + len(MOUNTS)])
    return actions


def walking_actions(world, rng):
    """Actions of mechs at full speed, many along an axis, with frequent jumps."""
    actions = random_actions(rng, len(world.mechs))
    actions[:, Action.THROTTLE] = rng.choice([1.0, 1.0, -1.0], len(actions))
    actions[:, Action.STRAFE] *= 0.3
    actions[:, Action.JET] = rng.choice([-1.0, 1.0], len(actions))
    actions[:, Action.PRIMARY : Action.VENT] = -1
    return actions


@pytest.mark.long
@pytest.mark.parametrize("name", ["game", "odd"])
def test_movement(name):
    cases = run(CONFIGS[name], seed=1, rounds=5, steps=4, fight=False)
    assert set(cases) >= MOVES, MOVES - set(cases)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "rounds"),
    [("game", 20), ("odd", 12), ("safe", 5), *(pytest.param(name, 60, marks=pytest.mark.slow) for name in CONFIGS)],
)
def test_fighting(name, rounds):
    cases = run(CONFIGS[name], seed=2, rounds=rounds, steps=4, fight=True)
    wanted = FIGHTS[name] | set(EVENT_KINDS)
    assert set(cases) >= wanted, wanted - set(cases)
