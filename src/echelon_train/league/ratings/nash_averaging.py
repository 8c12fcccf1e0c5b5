"""Nash averaging: who matters in a league where not everybody can be put in a row.

A mean score depends on who else is in the league, and many weak copies of one member change it. The Nash average does
not: it weighs the members as the best mixture of them against the best mixture of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize
from scipy.special import logit, logsumexp

from echelon_train.league.ratings.glicko2 import SCALE, Rating
from echelon_train.league.ratings.payoffs import Payoffs, predicted_scores

_VIRTUAL_GAMES = 1.0  # of every pair, with the score that the ratings predict
_LEAST_SHARE = 1e-12  # a predicted score that rounding makes 0 or 1 has no logit
_ITERATIONS = 10_000
_GRADIENT = 1e-11  # logits; what the mixture may lose against a member that it has weight on

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NashAverage:
    """The Nash average of P members."""

    members: tuple[str, ...]
    weights: Array  # (P,) of the mixture, at least 0, sum 1
    advantage: Array  # (P,) points against the mixture: 0 for those that have weight, below 0 for others
    filled: NDArray[np.bool_]  # (P, P) pairs that have not met, for which the ratings' prediction stands


def nash_average(payoffs: Payoffs, ratings: Mapping[str, Rating]) -> NashAverage:
    """Weigh the members by the equilibrium of the game whose players choose a member each.

    The game's payoff is the logit of the measured score. So that it is finite, and known for every pair, each pair gets
    one more game with the score that the ratings predict; for pairs that have not met it is all there is, and they are
    marked as `filled`. Of several equilibria it is the one of maximum entropy, so that exact copies of a member share
    its weight. Measured scores are never exactly alike: the weights of members that hardly differ may change much with
    a few games, the advantages do not.

    Parameters
    ----------
    payoffs
        The games.
    ratings
        Of every member, by its name.

    Raises
    ------
    ValueError
        If a member has no rating.

    References
    ----------
    D. Balduzzi, K. Tuyls, J. Perolat, T. Graepel (2018), Re-evaluating evaluation. NeurIPS 31.
    """
    met = payoffs.met
    predicted = predicted_scores(payoffs, ratings)
    total = payoffs.games * np.where(met, payoffs.score, 0.0) + _VIRTUAL_GAMES * predicted
    share = np.clip(total / (payoffs.games + _VIRTUAL_GAMES), _LEAST_SHARE, 1 - _LEAST_SHARE)
    logits = np.triu(logit(share), 1)
    logits = logits - logits.T
    weights = maximum_entropy_equilibrium(logits)
    filled = ~met & ~np.eye(len(weights), dtype=np.bool_)
    return NashAverage(payoffs.members, weights, SCALE * logits @ weights, filled)


def maximum_entropy_equilibrium(payoff: Array) -> Array:
    """The equilibrium (P,) of maximum entropy of a symmetric zero-sum game.

    The equilibria are the mixtures x with ``payoff @ x <= 0``. A linear program finds all that have weight in any of
    them; the entropy among those is maximised in its dual, where x is a softmax and the multipliers are sought.

    Parameters
    ----------
    payoff
        Antisymmetric (P, P), row against column.

    Raises
    ------
    ValueError
        If the matrix is not antisymmetric or not finite.
    """
    payoff = np.asarray(payoff, dtype=np.float64)
    if payoff.ndim != 2 or not np.isfinite(payoff).all() or not np.array_equal(payoff, -payoff.T):
        raise ValueError(f"expected an antisymmetric matrix of finite payoffs, got {payoff}")
    support = _support(payoff)
    weights = np.zeros(len(payoff))
    chosen = payoff[:, support]

    def dual(multipliers: Array) -> tuple[float, Array]:
        exponents = -multipliers @ chosen
        value = logsumexp(exponents)
        return float(value), -chosen @ np.exp(exponents - value)

    # against those that have weight the mixture is even, so their multipliers have either sign
    bounds = [(None if held else 0.0, None) for held in support]
    found = optimize.minimize(
        dual,
        np.zeros(len(payoff)),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": _ITERATIONS, "maxfun": _ITERATIONS, "ftol": 0.0, "gtol": _GRADIENT},
    )
    exponents = -found.x @ chosen
    weights[support] = np.exp(exponents - logsumexp(exponents))
    return weights


def _support(payoff: Array) -> NDArray[np.bool_]:
    """(P,) who has weight in any equilibrium.

    Of multiples of mixtures, all that can reach 1 do at once, as the sum of two equilibria is a multiple of one.
    """
    size = len(payoff)
    none, unit = np.zeros((size, size)), np.eye(size)
    found = optimize.linprog(
        np.repeat([0.0, -1.0], size),
        A_ub=np.block([[payoff, none], [-unit, unit]]),
        b_ub=np.zeros(2 * size),
        bounds=[(0, None)] * size + [(0, 1)] * size,
    )
    if found.x is None:
        raise RuntimeError(f"the linear program of the equilibria failed: {found.message}")
    support: NDArray[np.bool_] = found.x[size:] > 0.5
    return support
