"""The event stream: its order, its capacity, and its agreement with the state and the statistics."""

import numpy as np
import pytest

from echelon_env.config.battle import PACK
from echelon_env.config.catalog import Catalog
from rules.arena import Arena, changed, of_kind

EVERYTHING = {"primary": 1, "secondary": 1, "tertiary": 1, "special": 1}


def melee(decision_repeat=5, roster=PACK, catalog: Catalog | None = None, **overrides):
    """Two teams side by side, each mech within reach of all, in a pit of lava under crossfire."""
    places = [(24 + 4 * (i % 4), 24 + 4 * (i // 4)) for i in range(2 * len(roster))]
    teams = [{f"{colour} {i} {name}": places[2 * i + side] for i, name in enumerate(roster)} for side, colour in
             enumerate(("blue", "red"))]  # fmt: skip
    arena = Arena(*teams, decision_repeat=decision_repeat, catalog=catalog or changed(), **overrides)
    arena.fill("lava", x=(20, 44), y=(20, 44), z=(0, 1))
    for i, name in enumerate(arena.names):
        arena[name].armour = 1e6
        arena.order(name, turn=(-1) ** i, **EVERYTHING)
    return arena


FRENZY = {
    "laser": {"cooldown": 0.05, "heat": 0.0, "arc": 360.0, "range": 60.0},
    "flamer": {"cooldown": 0.05, "heat": 0.0, "arc": 360.0, "range": 60.0, "paint": 1.0},
    "painter": {"cooldown": 0.05, "heat": 0.0, "arc": 360.0, "range": 60.0},
    "missiles": {"cooldown": 0.05, "heat": 0.0, "arc": 360.0, "splash_radius": 60.0, "unaided_range": 50.0},
    "gauss": {"cooldown": 0.05, "heat": 0.0, "arc": 360.0, "splash_radius": 60.0},
    "autocannon": {"cooldown": 0.05, "heat": 0.0, "arc": 360.0},
    "smoke": {"cooldown": 0.05, "heat": 0.0, "charges": 0, "smoke_duration": 0.05},
}


@pytest.mark.parametrize("decision_repeat", [1, 5])
def test_the_event_array_holds_the_most_events_of_a_decision(decision_repeat):
    """All weapons fire every tick, every burst splashes all mechs, all stand in lava, fall, shut down and die."""
    arena = melee(decision_repeat, catalog=changed(**FRENZY), physics={"fall_duration": 0.05})
    mechs = arena.state.mechs[0]
    for i in range(40):
        mechs["heat"] = np.where(np.arange(len(mechs)) % 2, 0.0, 200.0 * (i % 2))
        if i == 39:
            mechs["armour"] = 1.0
        arena.run()
    assert max_used(arena) > 50 * decision_repeat
    assert arena.state.battles["lost_events"][0] == 0
    assert {e.kind for e in arena.log} >= {
        "shot",
        "hit",
        "splash",
        "impact",
        "hazard",
        "paint",
        "fall",
        "rise",
        "death",
    }


def max_used(arena):
    _, counts = np.unique([e.tick // arena.config.decision_repeat for e in arena.log], return_counts=True)
    return counts.max()


def test_the_event_array_holds_the_ends_of_all_projectiles_in_one_decision():
    """Missiles in flight for many seconds arrive together, and each splashes all mechs."""
    catalog = changed(missiles={**FRENZY["missiles"], "lifetime": 8.0})
    arena = melee(catalog=catalog, roster=("heavy",) * 3, combat={"anti_missile_probability": 0.0})
    capacity = arena.state.projectiles.shape[1]
    owner, target = arena.names[0], arena.names[3]
    aimed_at = arena[target]
    for _ in range(3 * 161):
        arena.missile(owner, target, aimed_at.x, aimed_at.y, 6)
    assert arena.state.battles["num_projectiles"][0] < capacity
    arena.run()
    assert len(of_kind(arena.log, "splash")) > 161 * 3
    assert arena.state.battles["lost_events"][0] == 0


def cut(engine, room):
    """Reduce the event array to a capacity of `room` events."""
    engine.state = engine.state._replace(events=engine.state.events[:, :room].copy())
    engine._bind_kernels()


def test_lost_events_do_not_change_the_battle():
    """Effects of shells on mechs and walls do not depend on the capacity of the event array."""
    arenas = []
    for room in (None, 3):
        arena = Arena({"heavy": (20, 30)}, {"medium": (34, 30, 180), "light": (31, 32.2, 180)}, decision_repeat=40)
        arena.fill("reinforced", x=(30, 33), y=(33, 34), z=(0, 5))
        if room is not None:
            cut(arena.engine, room)
            arena.state = arena.engine.state
        arena.order("heavy", secondary=1, tertiary=1, target="light")
        arena.run(4)
        arenas.append(arena)
    full, small = arenas
    assert full.state.battles["lost_events"][0] == 0 < small.state.battles["lost_events"][0]
    assert full.state.mechs["armour"][0].tolist() != [200, 150, 80]
    for name in ("x", "y", "armour", "legs", "stability", "heat", "fallen"):
        assert np.array_equal(full.state.mechs[name], small.state.mechs[name]), name
    assert full.state.voxel_damage.any()
    assert np.array_equal(full.state.voxel_damage, small.state.voxel_damage)
