"""Angles, the logarithm, the exponential function and the numerical tolerances.

They use + - x / only: the functions of the C library differ in their last bits between processors, and results must
not. Polynomials: Sun Microsystems' fdlibm (k_sin.c, k_cos.c, s_atan.c, e_log.c).
"""

from __future__ import annotations

import math

from echelon_env.engine.kernels import kernel

CONTACT_TOLERANCE = 1e-6
"""m; boxes and voxels with a smaller overlap only touch."""

TINY = 1e-9
"""m; shorter vectors have no direction."""

PI = 3.141592653589793
SQRT_HALF = 0.7071067811865476
LN_2 = 0.6931471805599453
HALF_PI_HIGH = 1.57079632673412561417e00  # the first 33 bits of pi / 2
HALF_PI_LOW = 6.07710050650619224932e-11  # pi / 2 - HALF_PI_HIGH


@kernel
def _sine_polynomial(x: float) -> float:
    z = x * x
    r = 8.33333333332248946124e-03 + z * (
        -1.98412698298579493134e-04
        + z * (2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10))
    )
    return x + x * z * (-1.66666666666666324348e-01 + z * r)


@kernel
def _cosine_polynomial(x: float) -> float:
    z = x * x
    r = 4.16666666666666019037e-02 + z * (
        -1.38888888888741095749e-03
        + z
        * (
            2.48015872894767294178e-05
            + z * (-2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11))
        )
    )
    return 1.0 - (0.5 * z - z * z * r)


@kernel
def cosine_sine(angle: float) -> tuple[float, float]:
    """Cosine and sine of an angle in radians, for |angle| of a few turns at most."""
    quadrant = math.floor(angle / (0.5 * PI) + 0.5)
    x = (angle - quadrant * HALF_PI_HIGH) - quadrant * HALF_PI_LOW
    sine, cosine = _sine_polynomial(x), _cosine_polynomial(x)
    remainder = int(quadrant) & 3
    along, across = (sine, cosine) if remainder & 1 else (cosine, sine)
    return along * (1 - ((remainder + 1) & 2)), across * (1 - (remainder & 2))  # signs without a branch


@kernel
def _arc_tangent(x: float) -> float:
    """Arc tangent of x >= 0."""
    if x < 0.4375:
        base, t = 0.0, x
    elif x < 0.6875:
        base, t = 4.63647609000806093515e-01, (2.0 * x - 1.0) / (2.0 + x)
    elif x < 1.1875:
        base, t = 7.85398163397448278999e-01, (x - 1.0) / (x + 1.0)
    elif x < 2.4375:
        base, t = 9.82793723247329054082e-01, (x - 1.5) / (1.0 + 1.5 * x)
    else:
        base, t = 1.57079632679489655800e00, -1.0 / x
    z = t * t
    w = z * z
    odd = z * (
        3.33333333333329318027e-01
        + w
        * (
            1.42857142725034663711e-01
            + w
            * (
                9.09088713343650656196e-02
                + w * (6.66107313738753120669e-02 + w * (4.97687799461593236017e-02 + w * 1.62858201153657823623e-02))
            )
        )
    )
    even = w * (
        -1.99999999998764832476e-01
        + w
        * (
            -1.11111104054623557880e-01
            + w * (-7.69187620504482999495e-02 + w * (-5.83357013379057348645e-02 + w * -3.65315727442169155270e-02))
        )
    )
    return base + (t - t * (odd + even))


@kernel
def arc_tangent2(y: float, x: float) -> float:
    """Angle in [-pi, pi] of the vector (x, y); 0 for the zero vector."""
    if x == 0.0:
        if y == 0.0:
            return 0.0
        return 0.5 * PI if y > 0.0 else -0.5 * PI
    angle = _arc_tangent(abs(y / x))
    if x < 0.0:
        angle = PI - angle
    return angle if y >= 0.0 else -angle


@kernel
def log1p(x: float) -> float:
    """Natural logarithm of 1 + x for x >= 0. The error is at most 1e-15 times the larger of the result and 1."""
    mantissa, exponent = math.frexp(1.0 + x)
    if mantissa < SQRT_HALF:
        mantissa, exponent = 2.0 * mantissa, exponent - 1
    s = (mantissa - 1.0) / (mantissa + 1.0)
    z = s * s
    series = z * (
        6.666666666666735130e-01
        + z
        * (
            3.999999999940941908e-01
            + z
            * (
                2.857142874366239149e-01
                + z
                * (
                    2.222219843214978396e-01
                    + z * (1.818357216161805012e-01 + z * (1.531383769920937332e-01 + z * 1.479819860511658591e-01))
                )
            )
        )
    )
    return exponent * LN_2 + s * (2.0 + series)


@kernel
def exponential(x: float) -> float:
    """E to the power of x; of -80 or 80 for x beyond them. The relative error is at most 1e-13.

    It is the series for x / 256, squared eight times: without branches, so that loops over arrays are vectorised.
    """
    y = min(max(x, -80.0), 80.0) * (1.0 / 256.0)
    p = 1.0 + y * (1.0 / 8.0) * (1.0 + y * (1.0 / 9.0) * (1.0 + y * (1.0 / 10.0)))
    p = 1.0 + y * (1.0 / 5.0) * (1.0 + y * (1.0 / 6.0) * (1.0 + y * (1.0 / 7.0) * p))
    p = 1.0 + y * (1.0 + y * (1.0 / 2.0) * (1.0 + y * (1.0 / 3.0) * (1.0 + y * (1.0 / 4.0) * p)))
    p = p * p
    p = p * p
    p = p * p
    p = p * p
    p = p * p
    p = p * p
    p = p * p
    return p * p


@kernel
def sigmoid(x: float) -> float:
    """The logistic function."""
    return 1.0 / (1.0 + exponential(-x))


@kernel
def hyperbolic_tangent(x: float) -> float:
    """The hyperbolic tangent, with an absolute error of at most 1e-13."""
    return 2.0 * sigmoid(2.0 * x) - 1.0


@kernel
def wrap_angle(angle: float) -> float:
    """The same angle in [-pi, pi)."""
    if -PI <= angle < PI:
        return angle
    wrapped = angle - 2.0 * PI * math.floor((angle + PI) / (2.0 * PI))
    return wrapped if -PI <= wrapped < PI else -PI  # rounding can lead out of the range


@kernel
def clip(value: float, low: float, high: float) -> float:
    """The value, clipped to [low, high]."""
    return min(max(value, low), high)


@kernel
def covered_cells(centre: float, half: float) -> tuple[int, int]:
    """The cells that a box covers along an axis: the first, and the one after the last."""
    return math.floor(centre - half + CONTACT_TOLERANCE), math.floor(centre + half - CONTACT_TOLERANCE) + 1


@kernel
def unit_in_plane(dx: float, dy: float) -> tuple[float, float]:
    """The unit vector along (dx, dy); the zero vector if its length is below TINY."""
    length = math.sqrt(dx * dx + dy * dy)
    if length < TINY:
        return 0.0, 0.0
    return dx / length, dy / length


@kernel
def segment_distance_squared(px: float, py: float, pz: float, dx: float, dy: float, dz: float) -> float:
    """Squared distance of the point (px, py, pz) from the segment between the origin and (dx, dy, dz)."""
    length_squared = dx * dx + dy * dy + dz * dz
    t = 0.0
    if length_squared > 0.0:
        t = clip((px * dx + py * dy + pz * dz) / length_squared, 0.0, 1.0)
    return (px - t * dx) ** 2 + (py - t * dy) ** 2 + (pz - t * dz) ** 2
