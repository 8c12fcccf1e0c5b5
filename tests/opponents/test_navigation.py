import math

import numpy as np
import pytest

from echelon_env import BattleEngine, make_config
from echelon_env.config.catalog import CONCRETE, LAVA
from echelon_env.engine.kernels import entry_point
from echelon_env.layout.actions import ACTION_DIM, Action
from echelon_env.layout.observations import STREAMS, Objective
from echelon_env.opponents.knowledge import make_knowledge
from echelon_env.opponents.memory import MEMORY, PLAN, allocate_scratch
from echelon_env.opponents.navigation import steer
from echelon_env.opponents.senses import own_class
from oracles.situations import set_voxels

IN_ZONE = STREAMS["objective"].start + Objective.IN_ZONE
CLASSES = ("light", "heavy")
JUMPERS = CLASSES[:1]


@entry_point
def walk_rows(knowledge, observations, memories, scratch, plans, actions):
    for r in range(observations.shape[0]):
        if observations[r, 0] > 0:
            plans[r].mech_class = own_class(observations[r])
            steer(knowledge, observations[r], memories[r], scratch, plans[r], actions[r])
            memories[r].clock += knowledge.rules[0].decision_seconds


class Walkers:
    """The blue mechs of battles, each walking to a goal on the map. The red ones stand still.

    Meanwhile the blue ones turn, like mechs that face enemies.
    """

    def __init__(self, config, battles=1, seed=0, turning=0.5):
        self.engine = BattleEngine(config, battles)
        self.team = len(config.blue)
        self.turning = turning
        self.knowledge, self.scratch = make_knowledge(config), allocate_scratch()
        self.observations = self.engine.reset(np.arange(battles) + seed)
        rows = battles * self.team
        self.memories, self.plans = np.zeros(rows, MEMORY), np.zeros(rows, PLAN)
        self.memories["seed"], self.memories["side"], self.plans["speed"] = np.arange(rows) + 1, 1.0, 1.0
        zones = self.engine.state.battles[["zone_x", "zone_y"]].tolist()
        self.goals = np.repeat(np.array(zones), self.team, axis=0)

    @property
    def mechs(self):
        return self.engine.state.mechs[:, : self.team].reshape(-1)

    @property
    def places(self):
        return np.stack([self.mechs["x"], self.mechs["y"]], axis=-1)

    @property
    def left(self):
        """Distances to the goals (rows,) in metres."""
        return np.linalg.norm(self.goals - self.places, axis=-1)

    @property
    def in_zone(self):
        return self.observations[:, : self.team, IN_ZONE].reshape(-1) > 0

    def put(self, row, place, goal):
        mech = self.engine.state.mechs[row // self.team, row % self.team : row % self.team + 1]
        mech["x"], mech["y"] = place
        self.goals[row] = goal

    def look(self):
        """Run a decision without movement, which updates the observations."""
        battles, mechs = self.engine.num_battles, self.engine.num_mechs
        self.observations, *_ = self.engine.step(np.zeros((battles, mechs, ACTION_DIM), np.float32))

    def step(self):
        mechs, battles = self.mechs, self.engine.num_battles
        dx, dy = (self.goals - self.places).T
        self.plans["goal_forward"] = dx * mechs["facing_x"] + dy * mechs["facing_y"]
        self.plans["goal_left"] = dy * mechs["facing_x"] - dx * mechs["facing_y"]
        rows = np.ascontiguousarray(self.observations[:, : self.team]).reshape(len(mechs), -1)
        acted = np.zeros((len(mechs), ACTION_DIM), np.float32)
        acted[:, Action.TURN] = self.turning
        walk_rows(self.knowledge, rows, self.memories, self.scratch, self.plans, acted)
        actions = np.zeros((battles, self.engine.num_mechs, ACTION_DIM), np.float32)
        actions[:, : self.team] = acted.reshape(battles, self.team, -1)
        self.observations, *_ = self.engine.step(actions)
        return acted

    def walk(self, seconds, near=0.5):
        """Walk until all goals are `near` metres away or the time is over; returns positions (decisions, rows, 2)."""
        track = [self.places]
        for _ in range(round(seconds / self.engine.config.decision_seconds)):
            if (self.left <= near).all():
                break
            self.step()
            track.append(self.places)
        return np.array(track)


def plain(*blue, **changes):
    return make_config(
        "duel", blue=blue, red=("medium",), zone={"score_to_win": 1e6}, terrain={"size": 64, "biomes": ("barrens",)},
        **changes,
    )  # fmt: skip


def walker(mech_class, boxes, place=(32.0, 12.0), goal=(32.0, 52.0), **changes):
    """A mech on empty ground with boxes (material, x, y, z); ranges are half-open, in whole metres."""
    walkers = Walkers(plain(mech_class, **changes))
    voxels = np.zeros_like(walkers.engine.state.voxels[0])
    for material, x, y, z in boxes:
        voxels[slice(*z), slice(*y), slice(*x)] = material
    set_voxels(walkers.engine.state, 0, voxels)
    walkers.put(0, place, goal)
    walkers.look()
    return walkers


def ways(walkers):
    return np.linalg.norm(np.diff(walkers, axis=0), axis=-1).sum(axis=0)


@pytest.mark.parametrize("mech_class", CLASSES)
def test_a_dead_end_larger_than_the_ego_map_is_left_and_not_entered_again(mech_class):
    """A pocket 20 m deep, open on the side from which the mech comes."""
    walls = [(CONCRETE, (20, 44), (38, 40), (0, 9)), (CONCRETE, (20, 22), (18, 40), (0, 9))]
    walls += [(CONCRETE, (42, 44), (18, 40), (0, 9))]
    walkers = walker(mech_class, walls, place=(32.0, 30.0))
    track = walkers.walk(80.0)
    assert walkers.left[0] <= 0.5
    assert ways(track)[0] < 120.0  # in and out once, 70 m, and some exploration
    inside = (np.abs(track[:, 0, 0] - 32) < 10) & (np.abs(track[:, 0, 1] - 29) < 9)
    assert not inside[np.argmin(inside) :].any()


@pytest.mark.parametrize("mech_class", CLASSES)
def test_a_mech_finds_and_passes_a_gap_of_its_own_width(mech_class):
    width = math.ceil(next(c.length for c in make_config("duel").catalog.mech_classes if c.name == mech_class))
    walls = [(CONCRETE, (10, 35), (30, 32), (0, 9)), (CONCRETE, (35 + width, 54), (30, 32), (0, 9))]
    walkers = walker(mech_class, walls)
    track = walkers.walk(40.0)
    assert walkers.left[0] <= 0.5
    assert ways(track)[0] < 52.0  # even if it looks on the wrong side first


@pytest.mark.parametrize("mech_class", CLASSES)
def test_mechs_walk_around_lava_but_cross_it_without_another_path(mech_class):
    """First a pool, then a moat across the whole map."""
    walkers = walker(mech_class, [(LAVA, (26, 38), (28, 34), (0, 1))])
    walkers.walk(40.0)
    assert walkers.left[0] <= 0.5
    assert walkers.mechs["heat"][0] == 0.0
    walkers = walker(mech_class, [(LAVA, (0, 64), (30, 32), (0, 1))])
    walkers.walk(120.0)
    assert walkers.left[0] <= 0.5


@pytest.mark.parametrize("mech_class", CLASSES)
def test_an_enclosed_mech_with_jets_jumps_over_the_wall(mech_class):
    walls = [(CONCRETE, (20, 44), y, (0, 3)) for y in ((10, 12), (32, 34))]
    walls += [(CONCRETE, x, (10, 34), (0, 3)) for x in ((20, 22), (42, 44))]
    walkers = walker(mech_class, walls, place=(32.0, 22.0))
    hottest = 0.0
    for _ in range(80):
        walkers.step()
        hottest = max(hottest, walkers.mechs["heat"][0])
    capacity = walkers.engine.config.catalog.mech_classes[walkers.mechs["mech_class"][0]].heat_capacity
    assert (walkers.left[0] <= 0.5) == (mech_class in JUMPERS)
    assert hottest < capacity
    if mech_class not in JUMPERS:
        assert hottest == 0.0


def test_two_mechs_pass_each_other_in_a_lane():
    walls = [(CONCRETE, x, (0, 64), (0, 9)) for x in ((26, 28), (36, 38))]
    walkers = Walkers(plain("medium", "medium"))
    voxels = np.zeros_like(walkers.engine.state.voxels[0])
    for material, x, y, z in walls:
        voxels[slice(*z), slice(*y), slice(*x)] = material
    set_voxels(walkers.engine.state, 0, voxels)
    walkers.put(0, (32.0, 12.0), (32.0, 52.0))
    walkers.put(1, (32.0, 52.0), (32.0, 12.0))
    walkers.look()
    walkers.walk(14.0)
    assert (walkers.left <= 0.5).all()


MARCHES = {
    "tunnels": {"terrain": {"biomes": ("tunnels",)}},
    "canals": {"terrain": {"biomes": ("canal",), "mirrored": True}},
    "large": {"terrain": {"size": 128}},
}


@pytest.mark.parametrize("name", MARCHES)
def test_packs_walk_to_the_zone_without_getting_stuck(name):
    config = make_config("skirmish", zone={"score_to_win": 1e6}, **MARCHES[name])
    walkers = Walkers(config, battles=6, seed=40, turning=0.0)
    straight = walkers.left / [config.catalog.mech_classes[c].top_speed for c in walkers.mechs["mech_class"]]
    arrived = np.full(len(straight), np.inf)
    track = []
    for k in range(480):
        arrived = np.where(walkers.in_zone & np.isinf(arrived), 0.25 * k, arrived)
        walkers.plans["speed"] = ~walkers.in_zone | (walkers.left > 3.0)
        track.append(np.where(walkers.in_zone[:, None], np.nan, walkers.places))
        if np.isfinite(arrived).all():
            break
        walkers.step()
    assert np.isfinite(arrived).all()
    assert np.median(arrived / straight) < 1.25  # including detours around terrain
    for first in range(0, len(track) - 80, 20):
        moved = np.linalg.norm(np.array(track[first : first + 80]) - track[first], axis=-1)
        assert not (moved.max(axis=0) < 2.0).any()
