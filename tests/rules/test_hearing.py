"""What mechs hear of their enemies."""

import math

import numpy as np
import pytest

from echelon_env.config.catalog import HEAVY, MEDIUM, SCOUT
from rules.arena import Arena

EAST, WEST = 0, 180
AHEAD, LEFT, BEHIND, RIGHT = range(4)


def listener(bearing=0.0, distance=10.0, facing=EAST, **overrides):
    """A medium that listens, and an enemy medium that walks past in a direction relative to the map's x axis."""
    x, y = 32 + distance * math.cos(math.radians(bearing)), 32 + distance * math.sin(math.radians(bearing))
    return Arena({"medium": (32, 32, facing)}, {"other medium": (x, y, WEST)}, **overrides)


def loudness(noise, roster=MEDIUM.top_speed * MEDIUM.noise):
    """The share that is heard of a sum of noise, relative to the noisier roster's."""
    return math.log1p(noise) / math.log1p(roster)


def heard(arena, ticks=2):
    """The listener's sounds while the enemy walks, and its distance then."""
    arena.order("other medium", throttle=1)
    arena.run(ticks)
    one, other = arena["medium"], arena["other medium"]
    return np.array(one.sounds), math.dist((one.x, one.y, one.z), (other.x, other.y, other.z))


def test_noise_is_speed_times_factor_over_one_plus_the_squared_distance():
    sounds, distance = heard(listener())
    noise = MEDIUM.top_speed * MEDIUM.noise / (1 + distance**2)
    assert sounds[AHEAD] == pytest.approx(loudness(noise))
    assert sounds[1:].tolist() == [0, 0, 0]


def test_a_standing_mech_is_silent():
    arena = listener()
    arena.run(2)
    assert not arena["medium"].sounds.any()


@pytest.mark.parametrize(
    ("bearing", "quadrant"),
    [(0, AHEAD), (40, AHEAD), (-40, AHEAD), (50, LEFT), (90, LEFT), (130, LEFT), (140, BEHIND), (180, BEHIND),
     (-140, BEHIND), (-130, RIGHT), (-90, RIGHT), (-50, RIGHT)],
)  # fmt: skip
def test_the_four_quadrants(bearing, quadrant):
    sounds, _ = heard(listener(bearing))
    assert sounds.argmax() == quadrant
    assert (sounds > 0).sum() == 1


def test_quadrants_turn_with_the_listener():
    sounds, _ = heard(listener(0, facing=90))
    assert sounds.argmax() == RIGHT


@pytest.mark.parametrize(("dx", "dy", "quadrant"), [(8, 8, AHEAD), (8, -8, AHEAD), (-8, 8, BEHIND), (-8, -8, BEHIND)])
def test_ties_go_to_ahead_and_then_to_behind(dx, dy, quadrant):
    arena = Arena({"medium": (32, 32, EAST)}, {"other medium": (32 + dx, 32 + dy)})
    arena["other medium"].vx = 5.0  # what it last moved by is what is heard; it moves no more
    arena.order("other medium", throttle=1)
    arena.run()
    arena.put("other medium", 32 + dx - MEDIUM.top_speed * 0.05, 32 + dy)
    arena.run()
    assert arena["medium"].sounds.argmax() == quadrant


@pytest.mark.parametrize(("distance", "audible"), [(29.0, True), (30.9, False)])
def test_nothing_is_heard_beyond_30_m(distance, audible):
    sounds, at = heard(listener(180, distance))
    assert (at <= 30) == audible
    assert sounds.any() == audible


@pytest.mark.parametrize("by", ["a wall", "smoke"])
def test_noise_is_muffled_without_line_of_sight(by):
    arena = listener()
    if by == "smoke":
        arena.smoke(37, 32, 1.5, radius=1.0)
    else:
        arena.fill("reinforced", x=(36, 37), y=(20, 40), z=(0, 10))
    sounds, distance = heard(arena)
    assert sounds[AHEAD] == pytest.approx(loudness(0.2 * MEDIUM.top_speed * MEDIUM.noise / (1 + distance**2)))


def test_team_mates_are_not_heard():
    arena = Arena({"medium": (32, 32), "second medium": (38, 32, WEST)}, {"heavy": (5, 60)})
    arena.order("second medium", strafe=1)
    arena.run(2)
    assert not arena["medium"].sounds.any()


def test_the_noises_of_a_quadrant_add_up_before_the_logarithm():
    arena = Arena({"medium": (32, 32, EAST)}, {"heavy": (40, 34, WEST), "scout": (42, 30, WEST)})
    for name in ("heavy", "scout"):
        arena.order(name, throttle=1)
    arena.run(2)
    noise = 0.0
    for name, kind in (("heavy", HEAVY), ("scout", SCOUT)):
        mech = arena[name]
        squared = (mech.x - 32) ** 2 + (mech.y - 32) ** 2 + (kind.height / 2 - MEDIUM.height / 2) ** 2
        noise += kind.top_speed * kind.noise / (1 + squared)
    roster = HEAVY.top_speed * HEAVY.noise + SCOUT.top_speed * SCOUT.noise
    assert roster > MEDIUM.top_speed * MEDIUM.noise - 10
    assert arena["medium"].sounds[AHEAD] == pytest.approx(loudness(noise, max(roster, 5.5 * 2.5)))


def test_slower_mechs_are_quieter():
    arena = listener()
    arena.order("other medium", throttle=0.1)
    arena.run(2)
    quiet = arena["medium"].sounds.max()
    assert 0 < quiet < heard(listener())[0].max()


def test_dead_mechs_neither_make_nor_hear_noise():
    arena = listener()
    heard(arena)
    arena["other medium"].alive = 0
    arena.run()
    assert not arena["medium"].sounds.any()
