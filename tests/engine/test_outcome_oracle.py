"""Every end of a battle and its rewards, with expected values and against the oracle."""

import math

import numpy as np
import pytest

from echelon_env.config.battle import REWARD_COMPONENTS
from echelon_env.config.catalog import AIR
from echelon_env.config.scenario import make_config
from echelon_env.engine.core import BattleEngine
from echelon_env.engine.state import BLUE, DRAW, ELIMINATION, RED, RUNNING, TIME_LIMIT, ZONE_CONTROL
from echelon_env.layout.actions import ACTION_DIM, Action
from oracles.compare import play
from oracles.situations import put_mech, set_voxels
from oracles.world import load

OUTCOME = REWARD_COMPONENTS.index("outcome")
WEIGHT = 10.0
IDLE = np.zeros((1, 4, ACTION_DIM), np.float32)
IDLE.flags.writeable = False
BOTH = (0, 2)  # the mechs that face each other


def make_engine(**overrides):
    """Two against two on an empty map: the first mechs of both teams face each other, the others are far apart."""
    config = make_config(
        "skirmish", blue=("medium", "scout"), red=("medium", "scout"), terrain={"size": 48, "height": 8}, **overrides
    )
    engine = BattleEngine(config)
    engine.reset([5])
    set_voxels(engine.state, 0, np.full((8, 48, 48), AIR, np.uint8))
    state = engine.state
    state.battles["zone_x"], state.battles["zone_y"], state.battles["zone_radius"] = 24.0, 40.0, 4.0
    world = load(state, 0, config)
    places = ((20.0, 10.0, 0.0), (2.0, 24.0, 0.0), (25.0, 10.0, -math.pi), (46.0, 24.0, 0.0))
    for mech, (x, y, yaw) in zip(world.mechs, places, strict=True):
        mech.x, mech.y, mech.yaw = x, y, yaw
        put_mech(state, 0, mech)
    state.mechs["potential"] = 0.5
    state.mechs["target"][0, BOTH] = BOTH[::-1]
    return engine


def put_in_zone(engine, *mechs):
    for mech in mechs:
        engine.state.mechs["x"][0, mech] = 22.0 + mech
        engine.state.mechs["y"][0, mech] = 40.0 + 3 * (mech % 2)


def kill(engine, mech):
    """Mark a mech as dead since an earlier decision."""
    row = engine.state.mechs[0, mech]
    engine.state.teams["mechs_alive"][0, row["team"]] -= row["alive"]
    row["alive"], row["armour"], row["potential"] = 0, 0, 0


def end(engine, actions=IDLE):
    """Run one decision, compared with the oracle; returns reason and winner."""
    _, found = play(engine, actions)
    assert not found, "\n".join(found)
    return int(engine.reason[0]), int(engine.winner[0])


def paid(engine):
    return (engine.reward_components[0, :, OUTCOME] / WEIGHT).tolist()


ENDS = [  # scores, mechs inside the zone, dead ones, shooters at a weak mech, last decision: reason, winner
    ((17.9, 0.0), (1,), (), (), False, ZONE_CONTROL, BLUE),
    ((0.0, 17.9), (3,), (), (), False, ZONE_CONTROL, RED),
    ((18.2, 18.1), (1, 3), (), (), False, ZONE_CONTROL, BLUE),
    ((17.95, 18.1), (0, 1, 3), (), (), False, ZONE_CONTROL, RED),
    ((20.0, 18.0), (), (), (), False, ZONE_CONTROL, BLUE),
    ((19.0, 19.0), (1, 3), (), (), False, ZONE_CONTROL, DRAW),
    ((17.7, 0.0), (1,), (), (), False, RUNNING, DRAW),  # short of the goal
    ((17.9, 17.9), (1, 3), (), (), False, RUNNING, DRAW),  # a zone with as many mechs of both scores for neither
    ((0.0, 0.0), (), (1, 3), (0,), False, ELIMINATION, BLUE),
    ((0.0, 0.0), (), (1, 3), (2,), False, ELIMINATION, RED),
    ((0.0, 0.0), (), (1, 3), BOTH, False, ELIMINATION, DRAW),
    ((10.0, 18.0), (), (1, 3), (0,), False, ZONE_CONTROL, RED),  # comes before elimination
    ((0.0, 0.0), (), (3,), (0,), True, ELIMINATION, BLUE),  # comes before time
]


@pytest.mark.parametrize(("scores", "inside", "dead", "shooters", "last", "reason", "winner"), ENDS)
def test_ends(scores, inside, dead, shooters, last, reason, winner):
    engine = make_engine()
    for mech in dead:
        kill(engine, mech)
    put_in_zone(engine, *inside)
    engine.state.teams["score"][0] = scores
    if shooters:
        engine.state.mechs["armour"][0, BOTH] = 5
    if last:
        engine.state.battles["step_count"] = engine.config.max_steps - 1
    actions = IDLE.copy()
    actions[0, shooters, Action.PRIMARY] = 1
    ended = end(engine, actions)
    if reason == RUNNING:
        assert ended[0] == RUNNING and not engine.out.terminated.any()
        return
    assert ended == (reason, winner)
    takes_part = [mech not in dead for mech in range(4)]
    assert engine.out.terminated[0].tolist() == takes_part
    assert not engine.out.truncated.any()
    won = [winner != DRAW and (1 if team == winner else -1) for team in (BLUE, BLUE, RED, RED)]
    assert paid(engine) == [sign * part for sign, part in zip(won, takes_part, strict=True)]


@pytest.mark.parametrize("time_limit", ["truncate", "terminate"])
@pytest.mark.parametrize("dead_agents", ["terminate", "persist"])
@pytest.mark.parametrize(
    ("scores", "armour", "winner"),
    [
        ((3.0, 2.0), (10.0, 60.0), BLUE),
        ((2.0, 3.0), (60.0, 10.0), RED),
        ((2.0, 2.0), (60.0, 59.0), BLUE),
        ((0.0, 0.0), (10.0, 59.0), RED),
        ((2.0, 2.0), (60.0, 60.0), DRAW),
    ],
)
def test_time(time_limit, dead_agents, scores, armour, winner):
    engine = make_engine(time_limit=time_limit, dead_agents=dead_agents)
    kill(engine, 0)
    kill(engine, 2)
    engine.state.mechs["armour"][0, [1, 3]] = armour
    engine.state.teams["score"][0] = scores
    engine.state.battles["step_count"] = engine.config.max_steps - 1
    assert end(engine) == (TIME_LIMIT, winner)
    takes_part = [dead_agents == "persist", True] * 2
    flagged, other = ("truncated", "terminated") if time_limit == "truncate" else ("terminated", "truncated")
    assert getattr(engine.out, flagged)[0].tolist() == takes_part
    assert not getattr(engine.out, other).any()
    pays = time_limit == "terminate" and winner != DRAW
    won = [1 if team == winner else -1 for team in (BLUE, BLUE, RED, RED)]
    assert paid(engine) == [sign * pays * part for sign, part in zip(won, takes_part, strict=True)]
    potentials = engine.state.mechs["potential"][0, [1, 3]]
    assert (potentials > 0).all() if time_limit == "truncate" else (potentials == 0).all()


@pytest.mark.parametrize("dead_agents", ["terminate", "persist"])
@pytest.mark.parametrize("last_decision", [False, True])
def test_death_of_one(dead_agents, last_decision):
    engine = make_engine(dead_agents=dead_agents)
    engine.state.mechs["armour"][0, 2] = 5
    if last_decision:
        engine.state.battles["step_count"] = engine.config.max_steps - 1
    shoot = IDLE.copy()
    shoot[:, :, Action.PRIMARY] = 1
    end(engine, shoot)
    dies = dead_agents == "terminate"
    assert engine.out.terminated[0].tolist() == [False, False, dies, False]
    assert engine.out.truncated[0].tolist() == [last_decision, last_decision, last_decision and not dies, last_decision]
    components = dict(zip(REWARD_COMPONENTS, engine.reward_components[0].T.tolist(), strict=True))
    assert components["death"] == [0, 0, -1, 0]
    assert components["kill"] == [10, 0, 0, 0]
    assert components["damage"] == pytest.approx([0.25, 0, 0.65, 0])
    assert components["approach"][2] == pytest.approx(-1.5 * 0.5)
