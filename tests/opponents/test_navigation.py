"""How scripted mechs walk to the zone: the weakest level on constructed and on generated maps, without weapons."""

import math

import numpy as np
import pytest

from echelon_env import BattleEngine, make_config, opponents
from echelon_env.config.catalog import CONCRETE, DEFAULT_CATALOG, LAVA
from echelon_env.layout.observations import STREAMS, Objective
from oracles.situations import set_voxels

IN_ZONE = STREAMS["objective"].start + Objective.IN_ZONE
CLASSES = ("light", "heavy")
JUMPERS = CLASSES[:1]
PEACE = {
    "banned_weapons": [weapon.name for weapon in DEFAULT_CATALOG.weapons],
    "zone": {"score_to_win": 1e6},
    "max_steps": 1000,
}


class Walk:
    """The blue team walks to the zone, the red one stands still. It keeps places (decisions, B, M, 2) and the heat."""

    def __init__(self, engine, level="trivial"):
        self.engine, self.team = engine, len(engine.config.blue)
        self.player = opponents.make(level, 3, engine.config)
        self.track, self.hottest = [self.places], 0.0
        self.arrived = np.full((engine.num_battles, self.team), np.inf)  # s

    @property
    def places(self):
        mechs = self.engine.state.mechs[:, : self.team]
        return np.stack([mechs["x"], mechs["y"]], axis=-1)

    def go(self, seconds):
        """Walk until all are in the zone or the time is over."""
        engine, shape = self.engine, (self.engine.num_battles, self.team, -1)
        actions = np.zeros_like(engine.actions)
        for decision in range(round(seconds / engine.config.decision_seconds)):
            seen = engine.observations[:, : self.team]
            now = decision * engine.config.decision_seconds
            self.arrived = np.where(seen[..., IN_ZONE] > 0, np.minimum(self.arrived, now), self.arrived)
            if np.isfinite(self.arrived).all():
                break
            actions[:, : self.team] = self.player.act(seen.reshape(-1, engine.observation_dim)).reshape(shape)
            engine.step(actions)
            self.track.append(self.places)
            self.hottest = max(self.hottest, engine.state.mechs["heat"].max())
        return self

    @property
    def has_arrived(self):
        return bool(np.isfinite(self.arrived).all())

    @property
    def metres(self):
        """Length of the way of the first mech."""
        return np.linalg.norm(np.diff(np.array(self.track)[:, 0, 0], axis=0), axis=-1).sum()


def walk(mech_class, boxes, seconds, start=(32.0, 12.0)):
    """A mech on empty ground with boxes (material, x, y, z) walks north; ranges are half-open, in whole metres."""
    config = make_config("duel", blue=[mech_class], terrain={"size": 64, "max_spawn_distance": 1000.0}, **PEACE)
    engine = BattleEngine(config)
    engine.reset([0])
    voxels = np.zeros_like(engine.state.voxels[0])
    for material, x, y, z in boxes:
        voxels[slice(*z), slice(*y), slice(*x)] = material
    set_voxels(engine.state, 0, voxels)
    mechs, battle = engine.state.mechs[0], engine.state.battles[0]
    (mechs["x"][0], mechs["y"][0]), mechs["x"][1], mechs["y"][1] = start, 60.0, 4.0
    battle["zone_x"], battle["zone_y"], battle["zone_radius"] = 32.0, 52.0, 2.0
    engine.observe()
    return Walk(engine).go(seconds)


@pytest.mark.parametrize("mech_class", CLASSES)
def test_a_dead_end_larger_than_the_ego_map_is_left_and_not_entered_again(mech_class):
    """A pocket 20 m deep, open on the side from which the mech comes."""
    walls = [(CONCRETE, (20, 44), (38, 40), (0, 9)), (CONCRETE, (20, 22), (18, 40), (0, 9))]
    walls += [(CONCRETE, (42, 44), (18, 40), (0, 9))]
    walked = walk(mech_class, walls, 80.0, start=(32.0, 30.0))
    assert walked.has_arrived
    assert walked.metres < 120.0  # in and out once, 70 m, and some exploration
    x, y = np.array(walked.track)[:, 0, 0].T
    inside = (np.abs(x - 32) < 10) & (np.abs(y - 29) < 9)
    assert not inside[np.argmin(inside) :].any()


@pytest.mark.parametrize("mech_class", CLASSES)
def test_a_mech_finds_and_passes_a_gap_of_its_own_width(mech_class):
    width = math.ceil(next(c.length for c in DEFAULT_CATALOG.mech_classes if c.name == mech_class))
    walls = [(CONCRETE, (10, 35), (30, 32), (0, 9)), (CONCRETE, (35 + width, 54), (30, 32), (0, 9))]
    walked = walk(mech_class, walls, 40.0)
    assert walked.has_arrived
    assert walked.metres < 52.0  # even if it looks on the wrong side first


@pytest.mark.parametrize("mech_class", CLASSES)
def test_mechs_walk_around_lava_but_cross_it_without_another_path(mech_class):
    """First a pool, then a moat across the whole map."""
    walked = walk(mech_class, [(LAVA, (26, 38), (28, 34), (0, 1))], 40.0)
    assert walked.has_arrived
    assert walked.hottest < 20.0  # its edge is touched; the straight way heats by 25 and more
    assert walk(mech_class, [(LAVA, (0, 64), (30, 32), (0, 1))], 120.0).has_arrived


@pytest.mark.parametrize("mech_class", CLASSES)
def test_an_enclosed_mech_with_jets_jumps_over_the_wall(mech_class):
    walls = [(CONCRETE, (20, 44), y, (0, 3)) for y in ((10, 12), (32, 34))]
    walls += [(CONCRETE, x, (10, 34), (0, 3)) for x in ((20, 22), (42, 44))]
    walked = walk(mech_class, walls, 20.0, start=(32.0, 22.0))
    capacity = next(c.heat_capacity for c in DEFAULT_CATALOG.mech_classes if c.name == mech_class)
    assert walked.has_arrived == (mech_class in JUMPERS)
    assert walked.hottest < (capacity if mech_class in JUMPERS else 1e-9)


def march(level="trivial", battles=6, **changes):
    engine = BattleEngine(make_config("skirmish", **{**PEACE, **changes}), battles)
    engine.reset(range(40, 40 + battles))
    return Walk(engine, level)


MARCHES = {
    "tunnels": {"terrain": {"biomes": ("tunnels",)}},
    "canals": {"terrain": {"biomes": ("canal",), "mirrored": True}},
    "large": {"terrain": {"size": 128}},
}


@pytest.mark.parametrize("name", MARCHES)
def test_packs_walk_to_the_zone_without_getting_stuck(name):
    walked = march(**MARCHES[name])
    mechs, battles = walked.engine.state.mechs[:, : walked.team], walked.engine.state.battles
    left = np.hypot(mechs["x"] - battles["zone_x"][:, None], mechs["y"] - battles["zone_y"][:, None])
    straight = left / walked.engine.tables.classes["top_speed"][mechs["mech_class"]]
    assert walked.go(120.0).has_arrived
    assert np.median(walked.arrived / straight) < 1.25  # including detours around terrain
