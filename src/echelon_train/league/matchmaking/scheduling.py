"""Rating runs: which matches to play next, so that every member's rating is known well enough after as few as possible.

A deviation by Glicko-2 counts what a member's own games say and takes its opponents' errors for independent. They are
not: if no member has played often against the anchor of the scale, all are wrong together, by several times their
deviations. So the results so far are fitted jointly, and a rating counts as known when its deviation is small by both
accounts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from echelon_env.config.schema import ConfigError, check_integer
from echelon_env.evaluate.seeds import evaluation_seed
from echelon_train.league.matchmaking.opponents import NEIGHBOURHOOD, NEWCOMER_GAMES
from echelon_train.league.ratings.glicko2 import DEVIATIONS, SCALE, Rating

PRIOR: Final = Rating()
"""What is assumed of members before their games: a mean that they share, and each one's deviation from it."""

MEAN_DEVIATION: Final = 500.0
"""Of the shared mean, points. Without it, many members would be as good as known to be 1500 on average."""


class Game(NamedTuple):
    """A map that two members played from both sides."""

    first: str
    second: str
    score: float  # the first's, 0 to 1
    seed: int  # of the map


class Pairing(NamedTuple):
    """A match to be played."""

    first: str
    second: str
    seeds: tuple[int, ...]  # of its maps, each to be played from both sides


@dataclass(frozen=True)
class JointRatings:
    """The ratings of P members that explain their games best, together, and how well those games determine them."""

    members: tuple[str, ...]
    ratings: NDArray[np.float64]  # (P,) points
    covariance: NDArray[np.float64]  # (P, P) squared points; zeros for the pinned


def joint_ratings(ratings: Mapping[str, Rating], games: Iterable[Game], pinned: Collection[str]) -> JointRatings:
    """The Bradley-Terry model of all games, on the scale of the pinned members.

    Scores count as shares of a win. The prior is normal, see `PRIOR` and `MEAN_DEVIATION`; the result is the mode of
    the posterior and its normal approximation there.

    Parameters
    ----------
    ratings
        Of all members by name; those of the pinned are taken as they are, the others' are not used.
    games
        In any order.
    pinned
        Members whose ratings are given, at least one.

    Raises
    ------
    ConfigError
        Without pinned members, for unknown ones, for games of a member with itself, and for a score out of range.
    """
    place = _places(ratings, pinned)
    free = np.array([name not in pinned for name in place])
    given = np.array([(each.rating - PRIOR.rating) / SCALE for each in ratings.values()])
    strengths, covariance = _posterior(*_tally(place, games), given, free)
    return JointRatings(tuple(place), PRIOR.rating + SCALE * strengths, SCALE**2 * covariance)


def deviations(ratings: Mapping[str, Rating], games: Iterable[Game], pinned: Collection[str]) -> dict[str, float]:
    """How uncertain each member's rating is, points: the larger of its deviation and that by `joint_ratings`.

    0 for the pinned. Raises `ConfigError` as `joint_ratings` does.
    """
    joint = joint_ratings(ratings, games, pinned)
    return dict(zip(ratings, np.sqrt(_covariance(joint, ratings, pinned).diagonal()).tolist(), strict=True))


def propose_matches(
    ratings: Mapping[str, Rating],
    games: Sequence[Game],
    pinned: Collection[str],
    *,
    target: float,
    matches: int,
    maps: int,
    seed: int,
) -> list[Pairing]:
    """The next matches of a rating run; none once all deviations are at most the target.

    They are to be played and a rating period is to be closed before it is asked again. Members that still learn are
    never known for good and do not belong in a rating run.

    Each match is the one that is expected to reduce the variances most, as far as they are above the target's square,
    given the matches chosen before it. Newcomers play against neighbours only, or the nearest member. A match has every
    map from both sides, and every pair gets the same maps in the same order, but none on which it has played already.

    Parameters
    ----------
    ratings
        Of all members by name.
    games
        All games so far, in any order.
    pinned
        Members that anchor the scale, at least one.
    target
        Deviation, see `deviations`, at which a rating counts as known, points; more than the smallest that Glicko-2
        gives, 45.
    matches
        How many to propose at most; fewer if these are expected to do.
    maps
        Of a match.
    seed
        Of the league; the maps come from it.

    Returns
    -------
    Up to `matches` pairings. Calling again with the same input gives the same.

    Raises
    ------
    ConfigError
        As `joint_ratings` does, and for fewer than two members, a target or numbers out of range.
    """
    if not DEVIATIONS[0] < target < np.inf:
        raise ConfigError(f"target: expected a deviation above {DEVIATIONS[0]:g} points, got {target!r}")
    matches, maps = check_integer("matches", matches), check_integer("maps", maps)
    if len(ratings) < 2:
        raise ConfigError(f"expected at least two members, got {len(ratings)}")
    joint = joint_ratings(ratings, games, pinned)
    covariance = _covariance(joint, ratings, pinned)
    rows, columns = np.triu_indices(len(ratings), 1)
    allowed = _may_play(joint, games)[rows, columns]
    rows, columns = rows[allowed], columns[allowed]
    ahead = joint.ratings[rows] - joint.ratings[columns]
    chosen: list[tuple[str, str]] = []
    while len(chosen) < matches and covariance.diagonal().max() > target**2:
        shared, weights = _effects(covariance, rows, columns, ahead, maps)
        before = np.maximum(covariance.diagonal(), target**2)
        after = np.maximum(covariance.diagonal() - weights[:, None] * shared**2, target**2)
        best = int(np.argmax(np.sum(before - after, axis=1)))
        covariance = covariance - weights[best] * np.outer(shared[best], shared[best])
        chosen.append((joint.members[rows[best]], joint.members[columns[best]]))
    return _with_maps(chosen, games, maps, seed)


def _places(ratings: Mapping[str, Rating], pinned: Collection[str]) -> dict[str, int]:
    if not pinned:
        raise ConfigError("pinned: expected at least one member that anchors the scale")
    for name in pinned:
        if name not in ratings:
            raise ConfigError(f"pinned: expected a member that has a rating, got {name!r}")
    return {name: index for index, name in enumerate(ratings)}


def _tally(place: Mapping[str, int], games: Iterable[Game]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(P, P) games that the row's member has played with the column's, and its scores in them, summed."""
    played, won = np.zeros((2, len(place), len(place)))
    for game in games:
        if game.first == game.second or game.first not in place or game.second not in place:
            raise ConfigError(f"games: expected two members that have ratings, got {game.first!r} and {game.second!r}")
        if not 0 <= game.score <= 1:
            raise ConfigError(f"games: expected a score from 0 to 1, got {game.score!r}")
        a, b = place[game.first], place[game.second]
        for row, column, score in ((a, b, game.score), (b, a, 1 - game.score)):
            played[row, column] += 1
            won[row, column] += score
    return played, won


def _posterior(
    played: NDArray[np.float64], won: NDArray[np.float64], given: NDArray[np.float64], free: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(P,) strengths, as given or, where free, the posterior's mode; and their (P, P) covariance. Glicko-2's units."""
    size = int(np.count_nonzero(free))
    covariance = np.zeros_like(played)
    if not size:
        return given, covariance
    prior = np.linalg.inv((PRIOR.deviation**2 * np.eye(size) + MEAN_DEVIATION**2) / SCALE**2)

    def all_strengths(values: NDArray[np.float64]) -> NDArray[np.float64]:
        strengths = given.copy()
        strengths[free] = values
        return strengths

    def ahead(values: NDArray[np.float64]) -> NDArray[np.float64]:
        strengths = all_strengths(values)
        return strengths[:, None] - strengths

    def loss(values: NDArray[np.float64]) -> float:
        """The negative logarithm of the posterior density."""
        return float(np.sum(won * np.logaddexp(0, -ahead(values))) + values @ prior @ values / 2)

    def slope(values: NDArray[np.float64]) -> NDArray[np.float64]:
        unexpected = np.sum(played * expit(ahead(values)) - won, axis=1)
        return np.asarray(unexpected[free] + prior @ values)

    def curvature(values: NDArray[np.float64]) -> NDArray[np.float64]:
        weights = played * expit(ahead(values)) * expit(-ahead(values))
        laplacian = np.diag(weights.sum(axis=1)) - weights
        return np.asarray(laplacian[np.ix_(free, free)] + prior)

    mode = minimize(loss, np.zeros(size), jac=slope, hess=curvature, method="trust-exact", options={"gtol": 1e-9}).x
    covariance[np.ix_(free, free)] = np.linalg.inv(curvature(mode))
    return all_strengths(mode), covariance


def _covariance(joint: JointRatings, ratings: Mapping[str, Rating], pinned: Collection[str]) -> NDArray[np.float64]:
    """(P, P) squared points; where Glicko-2 is less certain of a member, the difference is a separate error."""
    glicko = np.array([0 if name in pinned else each.deviation for name, each in ratings.items()])
    return np.asarray(joint.covariance + np.diag(np.maximum(glicko**2 - joint.covariance.diagonal(), 0)))


def _may_play(joint: JointRatings, games: Iterable[Game]) -> NDArray[np.bool_]:
    """(P, P) pairs that newcomers do not rule out."""
    played = dict.fromkeys(joint.members, 0)
    for game in games:
        played[game.first] += 1
        played[game.second] += 1
    new = np.array([played[name] < NEWCOMER_GAMES for name in joint.members])
    distance = np.abs(np.subtract.outer(joint.ratings, joint.ratings))
    np.fill_diagonal(distance, np.inf)
    near = (distance <= NEIGHBOURHOOD) | (distance == distance.min(axis=1, keepdims=True))
    return np.asarray(~new[:, None] & ~new | near | near.T)


def _effects(
    covariance: NDArray[np.float64],
    rows: NDArray[np.intp],
    columns: NDArray[np.intp],
    ahead: NDArray[np.float64],
    maps: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What a match of each of N pairs is expected to tell.

    Returns (N, P) covariances of all ratings with the pair's difference, and (N,) w, so that a match takes w
    times a covariance's square from a member's variance.
    """
    shared = covariance[rows] - covariance[columns]
    index = np.arange(len(rows))
    variance = np.maximum(shared[index, rows] - shared[index, columns], 0)
    damping = 1 / np.sqrt(1 + 3 * variance / (np.pi * SCALE) ** 2)
    score = expit(damping * ahead / SCALE)
    # the slope of the expected score, that is the mean of p (1 - p) over what the difference may be
    information = maps * damping * score * (1 - score) / SCALE**2
    return shared, information / (1 + information * variance)


def _with_maps(chosen: Iterable[tuple[str, str]], games: Iterable[Game], maps: int, seed: int) -> list[Pairing]:
    used: dict[frozenset[str], set[int]] = {}
    for game in games:
        used.setdefault(frozenset((game.first, game.second)), set()).add(game.seed)
    pairings = []
    for first, second in chosen:
        known = used.setdefault(frozenset((first, second)), set())
        fresh: list[int] = []
        index = 0
        while len(fresh) < maps:
            candidate = evaluation_seed(seed, index)
            if candidate not in known:
                fresh.append(candidate)
                known.add(candidate)
            index += 1
        pairings.append(Pairing(first, second, tuple(fresh)))
    return pairings
