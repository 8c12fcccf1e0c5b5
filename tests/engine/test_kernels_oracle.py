"""Single kernels on random inputs, where this is stricter than whole ticks."""

import math

import numpy as np
from scipy import optimize

from echelon_env.engine.geometry import log1p, segment_distance_squared
from echelon_env.engine.guidance import ballistic_aim
from echelon_env.engine.kernels import entry_point
from oracles.raycast import distance_to_segment


@entry_point
def _aim(inputs, out):
    for i in range(inputs.shape[0]):
        row = inputs[i]
        out[i, 0], out[i, 1], out[i, 2] = ballistic_aim(row[0], row[1], 1e6, row[2], row[3], row[4], row[5], row[6])


@entry_point
def _logarithms(values, out):
    for i in range(values.shape[0]):
        out[i] = log1p(values[i])


@entry_point
def _distances(points, segments, out):
    for i in range(points.shape[0]):
        p, d = points[i], segments[i]
        out[i] = segment_distance_squared(p[0], p[1], p[2], d[0], d[1], d[2])


def test_an_aimed_shell_hits_its_target():
    """Against the exact time of flight, the root of |d + v t + g t^2 / 2| = speed x t."""
    rng = np.random.default_rng(0)
    count = 2000
    inputs = np.zeros((count, 7))
    inputs[:, 0] = rng.choice([0.0, 9.81, 17.0], count)
    inputs[:, 1] = rng.uniform(35, 60, count)
    inputs[:, 2:4] = rng.uniform(-14, 14, (count, 2))
    inputs[:, 4] = rng.uniform(-6, 6, count)
    inputs[:, 5:7] = rng.uniform(-5, 5, (count, 2))
    vectors = np.zeros((count, 3))
    _aim(inputs, vectors)
    for (gravity, speed, *target), vector in zip(inputs.tolist(), vectors, strict=True):
        distance, lead = np.array(target[:3]), np.array([*target[3:], 0.0])
        drop = np.array([0.0, 0.0, gravity / 2])

        def short(t, distance=distance, lead=lead, drop=drop, speed=speed):
            return math.hypot(*(distance + lead * t + drop * t * t)) - speed * t

        time = optimize.brentq(short, 0.0, 2.0, xtol=1e-14)
        velocity = vector / np.linalg.norm(vector) * speed
        exact = (distance + lead * time + drop * time * time) / time
        np.testing.assert_allclose(velocity, exact, rtol=0, atol=0.01)
        miss = distance + lead * time - (velocity * time - drop * time * time)
        assert np.linalg.norm(miss) < 0.005


def test_logarithms_agree_with_the_standard_library():
    rng = np.random.default_rng(1)
    values = np.concatenate([10.0 ** rng.uniform(-12, 6, 20_000), rng.uniform(0, 3, 20_000), [0.0, 1.0, 2.0**52]])
    out = np.zeros(len(values))
    _logarithms(values, out)
    np.testing.assert_allclose(out, [math.log1p(value) for value in values.tolist()], rtol=1e-15, atol=4e-16)


def test_distances_from_segments():
    rng = np.random.default_rng(2)
    points, segments = rng.normal(0, 3, (5000, 3)), rng.normal(0, 4, (5000, 3))
    segments[::10] = 0.0
    out = np.zeros(len(points))
    _distances(points, segments, out)
    expected = [
        distance_to_segment(p, (0.0, 0.0, 0.0), d) for p, d in zip(points.tolist(), segments.tolist(), strict=True)
    ]
    np.testing.assert_allclose(np.sqrt(out), expected, rtol=1e-12, atol=1e-12)
