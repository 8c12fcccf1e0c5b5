"""Nash averaging: which members matter in a league that no single ranking describes.

A mean score depends on the other members, and many weak copies of one member change it. The Nash average does not
change: its weights are those of the mixture of members that is the best response to itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.linalg import norm
from numpy.typing import NDArray
from scipy import linalg, optimize
from scipy.special import logit

from echelon_train.league.errors import LeagueError
from echelon_train.league.ratings.glicko2 import SCALE, Rating
from echelon_train.league.ratings.payoffs import Payoffs, predicted_scores

_VIRTUAL_GAMES = 1.0  # per pair, with the score that the ratings predict
_LEAST_SHARE = 1e-12  # a predicted score that rounds to 0 or 1 has no finite logit

TOLERANCE = 1e-7
"""Largest payoff that a member may have against an equilibrium, as a share of the largest payoff of the game."""

_SOLVERS: Final[tuple[tuple[Literal["highs-ds", "highs-ipm"], float], ...]] = (
    ("highs-ds", 1e-10),
    ("highs-ds", 1e-7),
    ("highs-ipm", 1e-7),
)
"""Methods of `scipy.optimize.linprog` and their feasibility tolerances, in the order in which they are tried."""

_PIVOTS = 100  # iterations for each variable of a linear program, after which a solver gives up
_RANK = 1e-10  # singular values below this share of the largest are 0
_ITERATIONS = 200
_GAP = 1e-12  # nats
_LEAST_STEP = 1e-8

Array = NDArray[np.float64]
Point = tuple[Array, ...]  # weights, slacks and multipliers of an iterate, all above 0


@dataclass(frozen=True)
class NashAverage:
    """The Nash average of P members."""

    members: tuple[str, ...]
    weights: Array  # (P,) of the mixture, at least 0, sum 1
    advantage: Array  # (P,) points against the mixture: 0 for members with weight, below 0 for others
    filled: NDArray[np.bool_]  # (P, P) pairs that have not played; the ratings predict their score


def nash_average(payoffs: Payoffs, ratings: Mapping[str, Rating]) -> NashAverage:
    """Weight the members by the equilibrium of the game in which each of two players chooses a member.

    The payoff is the logit of the measured score. To make it finite, and known for every pair, each pair gets one
    virtual game with the score that the ratings predict. A pair that has not played has only this game, and is marked
    in `filled`. Of several equilibria, the result is the one of maximum entropy, so that exact copies of a member share
    its weight. Measured scores are never exactly alike: a few games may change the weights of similar members by much,
    but not the advantages.

    Raises ValueError if a member has no rating.

    References
    ----------
    D. Balduzzi, K. Tuyls, J. Perolat, T. Graepel (2018), Re-evaluating evaluation. NeurIPS 31.
    """
    played = payoffs.played
    predicted = predicted_scores(payoffs, ratings)
    total = payoffs.games * np.where(played, payoffs.score, 0.0) + _VIRTUAL_GAMES * predicted
    share = np.clip(total / (payoffs.games + _VIRTUAL_GAMES), _LEAST_SHARE, 1 - _LEAST_SHARE)
    logits = np.triu(logit(share), 1)
    logits = logits - logits.T
    weights = maximum_entropy_equilibrium(logits)
    filled = ~played & ~np.eye(len(weights), dtype=np.bool_)
    return NashAverage(payoffs.members, weights, SCALE * logits @ weights, filled)


def maximum_entropy_equilibrium(payoff: Array) -> Array:
    """The equilibrium (P,) of maximum entropy of a symmetric zero-sum game.

    The equilibria are the mixtures x with ``payoff @ x <= 0``, a polytope. A linear program finds a point of its
    relative interior, and so all members that have weight in any equilibrium. From there an interior-point method
    maximises the entropy.

    Every mixture is verified before it is returned: its weights are at least 0 and their sum differs from 1 by at most
    `TOLERANCE`, and no member's payoff against it is above `TOLERANCE` times the largest payoff. Its entropy is the
    maximum, except where payoffs differ by less than about 1e-5 of the largest and are not equal: there the solver may
    find only an equilibrium of smaller entropy. The same matrix always gives the same mixture.

    `payoff` is antisymmetric (P, P), row against column. Raises ValueError if it is not, is not finite or is empty;
    LeagueError if no mixture passes the verification. No such game is known.

    References
    ----------
    A. W. Tucker (1956), Dual systems of homogeneous linear relations: the point of the relative interior.
    S. Boyd, L. Vandenberghe (2004), Convex Optimization, section 11.7: the interior-point method.
    """
    payoff = np.asarray(payoff, dtype=np.float64)
    if payoff.ndim != 2 or not payoff.size or not np.isfinite(payoff).all() or not np.array_equal(payoff, -payoff.T):
        raise ValueError(f"expected an antisymmetric matrix of finite payoffs, got {payoff}")
    largest = np.abs(payoff).max(initial=0.0)
    if not largest:
        return np.full(len(payoff), 1 / len(payoff))
    scaled = payoff / largest
    for weights in _candidates(scaled):
        is_mixture = (weights >= 0).all() and abs(weights.sum() - 1) <= TOLERANCE
        if is_mixture and (scaled @ weights).max() <= TOLERANCE:
            return weights
    raise LeagueError(f"found no equilibrium of the game with the payoffs {payoff.tolist()}")


def _candidates(payoff: Array) -> Iterator[Array]:
    """Mixtures (P,) that should be equilibria, those of greater entropy first.

    By Tucker's theorem there is a multiple x of an equilibrium with which each member has a weight of at least 1 or
    loses by at least 1. Its support contains the supports of all equilibria. Where payoffs are almost equal, x can be
    too large for a solver. The last candidate is then the mixture with the smallest greatest loss.
    """
    size = len(payoff)
    weight_or_loss = np.vstack([payoff, payoff - np.eye(size)])
    for multiple in _solutions(c=np.ones(size), A_ub=weight_or_loss, b_ub=np.repeat([0.0, -1.0], size)):
        yield _most_even(payoff, multiple)
        yield multiple / multiple.sum()
    last = np.append(np.zeros(size), 1.0)
    losses = {"A_ub": np.column_stack([payoff, -np.ones(size)]), "b_ub": np.zeros(size)}
    for found in _solutions(c=last, A_eq=1 - last[None], b_eq=np.ones(1), **losses):
        yield found[:-1] / found[:-1].sum()


def _solutions(**program: Array) -> Iterator[Array]:
    """Non-negative solutions of a linear program, the most exact first; none where the solvers find none."""
    for method, tolerance in _SOLVERS:
        options: dict[str, Any] = {
            "primal_feasibility_tolerance": tolerance,
            "dual_feasibility_tolerance": tolerance,
            "maxiter": _PIVOTS * len(program["c"]),
        }
        found: Any = optimize.linprog(**program, method=method, options=options)  # type: ignore[call-overload]
        if found.status == 0:
            yield np.maximum(found.x, 0.0)


def _most_even(payoff: Array, multiple: Array) -> Array:
    """The equilibrium (P,) of maximum entropy, given a multiple of one in the relative interior.

    Members of the support have a payoff of 0 against every equilibrium, all others at most 0.
    """
    support = multiple > -payoff @ multiple
    even = np.vstack([payoff[np.ix_(support, support)], np.ones(np.count_nonzero(support))])
    right = np.append(np.zeros(len(even) - 1), 1.0)
    start = multiple[support] / multiple[support].sum()
    start = start + np.linalg.lstsq(even, right - even @ start, rcond=_RANK)[0]
    outside = payoff[np.ix_(~support, support)]
    directions = linalg.null_space(even, rcond=_RANK)
    if directions.shape[1] and (start > 0).all() and (outside @ start < 0).all():
        start = _maximise_entropy(start, directions, outside)
    weights = np.zeros(len(payoff))
    weights[support] = start
    return weights


def _maximise_entropy(start: Array, directions: Array, outside: Array) -> Array:
    """The mixture (S,) of maximum entropy with ``outside @ mixture <= 0``, by a primal-dual interior-point method.

    Parameters
    ----------
    start
        (S,) a mixture with positive weights and negative payoffs of all members outside. Every iterate has them, too.
    directions
        (S, D) orthonormal; the mixture differs from the start by a combination of them.
    outside
        (N, S) payoffs of the members without weight.
    """
    bounds = outside @ directions
    freedom = directions.shape[1]

    def residual(point: Point, barrier: float) -> Array:
        weights, slack, multipliers = point
        dual = directions.T @ np.log(weights) + bounds.T @ multipliers
        return np.concatenate([dual, multipliers * slack - barrier])

    slack = -outside @ start
    point: Point = start, slack, 0.1 / np.maximum(slack, 0.1)
    for _ in range(_ITERATIONS):
        weights, slack, multipliers = point
        gap = float(slack @ multipliers)
        barrier = 0.1 * gap / max(1, len(slack))
        before = residual(point, barrier)
        if gap < _GAP and np.abs(before[:freedom]).max() < _GAP:
            break
        with np.errstate(all="ignore"):
            curvature = directions.T @ (directions / weights[:, None]) + bounds.T @ (
                bounds * (multipliers / slack)[:, None]
            )
            slope = directions.T @ np.log(weights) + bounds.T @ (barrier / slack)
        if not (np.isfinite(curvature).all() and np.isfinite(slope).all()):
            break
        step = np.linalg.lstsq(curvature, -slope)[0]
        tighter = bounds @ step
        moved = directions @ step, -tighter, (barrier - multipliers * (slack - tighter)) / slack
        length = min(1.0, *(_reach(value, change) for value, change in zip(point, moved, strict=True)))
        while length > _LEAST_STEP:
            tried: Point = tuple(value + length * change for value, change in zip(point, moved, strict=True))
            if norm(residual(tried, barrier)) <= (1 - 0.01 * length) * norm(before):
                break
            length /= 2
        else:
            break
        point = tried
    return point[0]


def _reach(values: Array, moved: Array) -> float:
    """How far positive values may go in a direction and stay well above 0."""
    falling = moved < 0
    return 0.99 * float(np.min(-values[falling] / moved[falling], initial=np.inf))
