"""Every ability of `Skill`: a mech with it and one without it, on constructed observations."""

import math
from dataclasses import fields

import numpy as np
import pytest

from echelon_env import make_config
from echelon_env.config.catalog import DEFAULT_CATALOG, MOUNTS
from echelon_env.layout.actions import Action
from echelon_env.layout.observations import OBSERVATION_DIM, STREAMS, Comm, Contact, Objective, Self, Squad
from echelon_env.opponents import LEVELS, Scripted, Skill

CONFIG = make_config("skirmish")
MAP_DIAGONAL = math.sqrt(2) * CONFIG.terrain.size
ZONE_RADIUS = 5.0  # m
TRIGGERS = slice(Action.PRIMARY, Action.PRIMARY + len(MOUNTS))
CLASSES = {mech_class.name: mech_class for mech_class in DEFAULT_CATALOG.mech_classes}


def direction(forward, left):
    distance = math.hypot(forward, left)
    return {
        "DIRECTION_FORWARD": forward / distance, "DIRECTION_LEFT": left / distance, "DISTANCE": distance / MAP_DIAGONAL
    }  # fmt: skip


def look(mech, enemies=(), mates=(), messages=(), zone=(30.0, 0.0), **features):
    """The observation (D,) of a mech of a class: others as (class, metres forward, metres left, features)."""
    seen = np.zeros(OBSERVATION_DIM, np.float32)
    for name in ("ALIVE", "ARMOUR", "LEGS", "STABILITY", "ON_GROUND", "HEADING_COS", "SENSOR_QUALITY"):
        seen[Self[name]] = 1.0
    features = {f"IS_{mech.upper()}": 1.0, "HAS_ELECTRONICS": float(CLASSES[mech].electronics), **features}
    for name, number in features.items():
        if name in Self.__members__:
            seen[Self[name]] = number
    objective = {"RADIUS": ZONE_RADIUS / 8.0, "TIME_LEFT": 1.0, **direction(*zone)}
    edge = math.hypot(*zone) - ZONE_RADIUS
    objective["DISTANCE"] = max(0.0, edge) / MAP_DIAGONAL
    objective["DISTANCE_NEAR"] = min(1.0, math.hypot(*zone) / 8.0)
    objective["IN_ZONE"] = float(edge < 0.0)
    for name, number in {**objective, **features}.items():
        if name in Objective.__members__:
            seen[STREAMS["objective"].start + Objective[name]] = number
    for table, feature, mechs in (("contacts", Contact, enemies), ("squad", Squad, mates)):
        for row, (kind, forward, left, more) in enumerate(mechs):
            at = STREAMS[table].start + row * STREAMS[table].row_width
            entries = {"ARMOUR": 1.0, f"IS_{kind.upper()}": 1.0, **direction(forward, left)}
            if feature is Contact:
                entries["LINE_OF_SIGHT"] = 1.0
            for name, number in {**entries, **more}.items():
                seen[at + feature[name]] = number
            seen[STREAMS[f"{table}_mask"].start + row] = 1.0
    for row, entries in enumerate(messages):
        at = STREAMS["comm"].start + row * STREAMS["comm"].row_width
        for name, number in entries.items():
            seen[at + Comm[name]] = number
        seen[STREAMS["comm_mask"].start + row] = 1.0
    return seen


def plays(seen, decisions=1, **skill):
    """The actions (decisions, A) of a mech with these abilities for a constant observation."""
    player = Scripted("expert", 0, CONFIG)
    player._rows._skills[[*LEVELS].index("expert")] = Skill(**skill).record()[0]
    return np.array([player.act(seen[None])[0] for _ in range(decisions)])


def play(seen, **skill):
    """The first of these actions (A,)."""
    return plays(seen, **skill)[0]


def walk(action):
    """The movement of an action: (forward, left)."""
    return action[Action.THROTTLE], action[Action.STRAFE]


def target(action):
    """The contact row that an action names, -1 for none."""
    rows = action[Action.TARGET_0 : Action.TARGET_4 + 1]
    return int(rows.argmax()) if rows.max() > 0 else -1


def fired(action):
    """Names of the mounts whose triggers are pulled."""
    return {mount for mount, pull in zip(MOUNTS, action[TRIGGERS], strict=True) if pull > 0}


def aims():
    seen = look("medium", [("medium", 5.0, 2.0, {})])
    shots = [(plays(seen, 64, aims=able)[:, Action.PRIMARY] > 0).mean() for able in (True, False)]
    assert shots == [1.0, 1 / 16]
    with_it, without = play(seen, aims=True), play(seen)
    assert target(with_it) == 0
    assert target(without) == -1
    assert with_it[Action.TURN] > 0
    assert without[Action.TURN] == 0  # the zone lies ahead


def range_share():
    seen = look("heavy", [("heavy", 6.0, 0.0, {})])
    assert walk(play(seen, aims=True, range_share=1.0))[0] < 0
    assert walk(play(seen, aims=True, range_share=0.2))[0] > 0
    assert walk(play(seen, aims=True))[0] > 0


def cools():
    enemy = [("medium", 5.0, 0.0, {"PAINTED": 1.0})]
    hot, cold = look("light", enemy, HEAT=0.97), look("light", enemy, HEAT=0.0)
    assert "secondary" in fired(play(cold, aims=True, cools=True))
    assert not fired(play(hot, aims=True, cools=True))
    assert play(hot, aims=True, cools=True)[Action.VENT] > 0
    assert "secondary" in fired(play(hot, aims=True))
    assert play(hot, aims=True)[Action.VENT] <= 0


def paints():
    painted, plain = (look("scout", [("medium", 8.0, 0.0, {"PAINTED": paint})]) for paint in (1.0, 0.0))
    assert fired(play(plain, aims=True, cools=True, paints=True)) == {"primary"}
    assert not fired(play(painted, aims=True, cools=True, paints=True))
    assert not fired(play(plain, aims=True, cools=True))


def dodges():
    seen = look("medium", [("medium", 18.0, 0.0, {})])
    sides = plays(seen, 40, aims=True, range_share=1.0, dodges=True)[:, Action.STRAFE]
    assert sides.min() < -0.5
    assert sides.max() > 0.5
    assert np.abs(plays(seen, 40, aims=True, range_share=1.0)[:, Action.STRAFE]).max() < 0.2


HURT = {"ARMOUR": 0.2}
MATE = [("medium", -5.0, 0.0, {})]


def leaves_at():
    seen = look("medium", [("medium", 8.0, 0.0, {})], MATE, **HURT)
    assert walk(play(seen, aims=True, leaves_at=0.45))[0] < 0
    assert walk(play(seen, aims=True, leaves_at=0.15))[0] > 0
    assert walk(play(seen, aims=True))[0] > 0
    alone = look("medium", [("medium", 8.0, 0.0, {})], **HURT)
    assert walk(play(alone, aims=True, leaves_at=0.45))[0] > 0


def screens():
    ready = {"HURT_FORWARD": -0.1, "HAS_SPECIAL": 1.0}
    able = {"aims": True, "cools": True, "screens": True}
    enemy = [("medium", 8.0, 0.0, {})]
    assert "special" in fired(play(look("medium", enemy, **ready), **able))
    assert "special" not in fired(play(look("medium", enemy, **ready), aims=True, cools=True))
    for lack in ({"HURT_FORWARD": 0.0}, {"HAS_SPECIAL": 0.0}, {"COOLDOWN_SPECIAL": 0.5}, {"HEAT": 0.95}):
        assert "special" not in fired(play(look("medium", enemy, **{**ready, **lack}), **able))
    hidden, far = [("medium", 8.0, 0.0, {"LINE_OF_SIGHT": 0.0})], [("medium", 21.0, 0.0, {})]
    for enemies in (hidden, far):
        assert "special" not in fired(play(look("medium", enemies, **ready), **able))
    empty = look("medium", hidden, HURT_FORWARD=-0.1, HEAT=0.9)
    assert play(empty, **able)[Action.VENT] > 0
    warm = look("medium", enemy, **ready, HEAT=0.7)
    assert fired(play(warm, **able)) < fired(play(warm, aims=True, screens=True))


def yields():
    stronger = look("light", [("heavy", 14.0, 0.0, {}), ("heavy", 14.0, 3.0, {})], MATE)
    weaker = look("heavy", [("light", 14.0, 0.0, {})], MATE)
    assert walk(play(stronger, aims=True, yields=True))[0] < 0
    assert walk(play(stronger, aims=True))[0] > 0
    assert walk(play(weaker, aims=True, yields=True))[0] > 0


def guards():
    enemy, leaving = [("medium", 8.0, 0.0, {})], {"aims": True, "leaves_at": 0.45}
    slipping = look("medium", enemy, MATE, **HURT, ENEMY_SHARE=1.0, ENEMY_SCORE=0.95)
    safe = look("medium", enemy, MATE, **HURT, OWN_SHARE=1.0, OWN_SCORE=0.5)
    assert walk(play(slipping, **leaving, guards=True))[0] > 0
    assert walk(play(slipping, **leaving))[0] < 0
    assert walk(play(safe, **leaving, guards=True))[0] < 0
    overtaken = {**HURT, "OWN_SCORE": 0.2, "ENEMY_SCORE": 0.1, "ENEMY_SHARE": 1.0}
    late, early = (look("medium", enemy, MATE, zone=(20.0, 0.0), **overtaken, TIME_LEFT=t) for t in (0.05, 1.0))
    assert walk(play(late, **leaving, guards=True))[0] > 0
    assert walk(play(early, **leaving, guards=True))[0] < 0
    able, held = {"aims": True, "range_share": 1.0}, {"ENEMY_SCORE": 0.9}
    middle, edge, outside = (look("heavy", [("heavy", 6.0, 0.0, {})], zone=(x, 0.0), **held) for x in (0.1, 4.8, 8.0))
    for seen, stays in ((middle, False), (edge, True), (outside, True)):
        assert (walk(play(seen, **able, guards=True))[0] > 0) == stays
        assert walk(play(seen, **able))[0] < 0
    aside = [plays(middle, 20, **able, dodges=True, guards=holds)[:, Action.STRAFE] > 0 for holds in (True, False)]
    assert [int((now[1:] != now[:-1]).sum()) for now in aside] == [6, 1]  # in 5 s


def scouts():
    """In the zone, with an enemy to the left that it can paint or has painted."""
    able = {"aims": True, "cools": True, "paints": True, "range_share": 1.0}
    plain, painted = (look("scout", [("heavy", 0.0, 18.0, {"PAINTED": p})], zone=(0.1, 0.0)) for p in (0.0, 1.0))
    assert walk(play(plain, **able, scouts=True))[1] > 0.5
    assert walk(play(painted, **able, scouts=True))[1] < 0.5
    assert np.hypot(*walk(play(plain, **able))) < 0.1


def jams():
    enemy = [("medium", 20.0, 0.0, {})]
    radiates = {
        (able, jammed): tuple(
            play(look("scout", enemy, MATE, JAMMED=jammed), aims=True, jams=able)[[Action.ECM, Action.ECCM]] > 0
        )
        for able in (True, False)
        for jammed in (0.0, 1.0)
    }
    assert radiates == {
        (True, 0.0): (True, False), (True, 1.0): (False, True),
        (False, 0.0): (False, False), (False, 1.0): (False, False),
    }  # fmt: skip


def focuses():
    able = {"aims": True, "range_share": 1.0}
    seen = look("medium", [("heavy", 5.0, 1.0, {}), ("heavy", 6.0, -1.0, {"ARMOUR": 0.1})])
    assert target(play(seen, **able, focuses=True)) == 1
    assert target(play(seen, **able)) == 0


def jets():
    def flies(seen, able=True):
        return play(seen, aims=True, jets=able)[Action.JET] > 0

    assert flies(look("light")) and not flies(look("light"), able=False)
    assert not flies(look("light", HEAT=0.6)) and not flies(look("light", zone=(12.0, 0.0)))
    assert not flies(look("medium"))


def talks():
    able, half = {"aims": True, "range_share": 1.0}, CONFIG.terrain.size / 2
    enemies = [("heavy", 10.0, -1.0, {}), ("heavy", 10.0, 4.0, {})]
    seen = look("medium", enemies, MATE, POSITION_X=0.2, POSITION_Y=-0.1)
    action = play(seen, **able, talks=True)
    assert target(action) == target(play(seen, **able)) == 0
    place = [0.2 + 10.0 / half, -0.1 - 1.0 / half, 1.0]
    np.testing.assert_allclose(action[Action.COMM_0 : Action.COMM_2 + 1], place, atol=1e-5)
    assert not play(seen, **able)[Action.COMM_0 : Action.COMM_7 + 1].any()
    said = {"MESSAGE_0": 0.2 + 10.0 / half, "MESSAGE_1": -0.1 + 4.0 / half, "MESSAGE_2": 1.0}
    hears = look("medium", enemies, MATE, [{"IS_OWN": 1.0}, said, said], POSITION_X=0.2, POSITION_Y=-0.1)
    assert target(play(hears, **able, talks=True)) == 1
    assert target(play(hears, **able)) == 0
    own = look("medium", enemies, MATE, [{**said, "IS_OWN": 1.0}], POSITION_X=0.2, POSITION_Y=-0.1)
    assert target(play(own, **able, talks=True)) == 0


@pytest.mark.parametrize("ability", [field.name for field in fields(Skill)])
def test_ability(ability):
    """Each ability has a function above; a new ability without one fails."""
    globals()[ability]()
