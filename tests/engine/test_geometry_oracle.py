import math

import numpy as np

from echelon_env.engine.geometry import arc_tangent2, cosine_sine, wrap_angle
from echelon_env.engine.kernels import entry_point

PRECISION = 4e-16


@entry_point
def _cosines_sines(angles, out):
    for i in range(angles.shape[0]):
        out[i, 0], out[i, 1] = cosine_sine(angles[i])


@entry_point
def _arc_tangents(vectors, out):
    for i in range(vectors.shape[0]):
        out[i] = arc_tangent2(vectors[i, 1], vectors[i, 0])


@entry_point
def _wrapped(angles, out):
    for i in range(angles.shape[0]):
        out[i] = wrap_angle(angles[i])


def _angles():
    rng = np.random.default_rng(0)
    quarters = np.arange(-16, 17) * math.pi / 8
    near = np.concatenate([np.nextafter(quarters, -9), quarters, np.nextafter(quarters, 9), quarters + 1e-9])
    return np.concatenate([rng.uniform(-7, 7, 50_000), rng.normal(0, 1e-6, 1000), near])


def test_cosine_and_sine_agree_with_the_standard_library():
    angles = _angles()
    out = np.zeros((len(angles), 2))
    _cosines_sines(angles, out)
    expected = [(math.cos(angle), math.sin(angle)) for angle in angles.tolist()]
    np.testing.assert_allclose(out, expected, rtol=0, atol=PRECISION)


def test_arc_tangent_agrees_with_the_standard_library():
    rng = np.random.default_rng(1)
    scales = 10.0 ** rng.uniform(-8, 8, (50_000, 2))
    corners = np.array([(x, y) for x in (-1.0, -0.0, 0.0, 1.0) for y in (-1.0, 0.0, 1.0)])
    vectors = np.concatenate([rng.normal(0, 1, (50_000, 2)) * scales, rng.normal(0, 20, (50_000, 2)), corners])
    out = np.zeros(len(vectors))
    _arc_tangents(vectors, out)
    expected = np.array([math.atan2(y, x) if (x, y) != (0, 0) else 0.0 for x, y in vectors.tolist()])
    np.testing.assert_allclose(out, expected, rtol=2 * PRECISION, atol=0)


def test_wrapped_angles_are_the_same_angle_in_the_half_open_range():
    angles = np.concatenate([_angles(), np.array([-math.pi, math.pi, 3 * math.pi, np.nextafter(-math.pi, -9)])])
    out = np.zeros(len(angles))
    _wrapped(angles, out)
    assert (out >= -math.pi).all()
    assert (out < math.pi).all()
    turns = (angles - out) / (2 * math.pi)
    np.testing.assert_allclose(turns, np.round(turns), rtol=0, atol=1e-15 * 10)
