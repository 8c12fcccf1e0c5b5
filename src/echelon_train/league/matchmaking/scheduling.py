"""Rating runs: which matches to play next, so that as few as possible make every rating certain enough.

A Glicko-2 deviation measures the information in a member's own games, and treats the errors of its opponents' ratings
as independent. They are not: if few games connect the members to the anchor of the scale, all ratings share an error
of several times their deviations. So all games are also fitted jointly. A rating counts as known when both deviations
are small.
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
"""Prior of the ratings: the expected mean of all members, and the deviation of each member from their mean."""

LEAST_GAIN: Final = 0.001
"""Expected share by which a map must reduce a variance above the target."""

LEAST_INFORMATION: Final = 0.01
"""Least p (1 - p) of the score p between two members, by their games so far (49 that one has won are less). More games
of such a pair hardly reduce a variance, and the deviation of a member that loses to all others stays large."""

MEAN_DEVIATION: Final = 500.0
"""Prior deviation of the mean of all members, points. Without it, the mean of many members would be certain: 1500."""


class Game(NamedTuple):
    """One map of a match, played from both sides."""

    first: str
    second: str
    score: float  # of the first, 0 to 1
    seed: int  # of the map


class Pairing(NamedTuple):
    """A match to play."""

    first: str
    second: str
    seeds: tuple[int, ...]  # of its maps, each played from both sides


@dataclass(frozen=True)
class JointRatings:
    """The ratings of P members that explain all games best, with their covariance."""

    members: tuple[str, ...]
    ratings: NDArray[np.float64]  # (P,) points
    covariance: NDArray[np.float64]  # (P, P) squared points; zeros for the pinned


def joint_ratings(ratings: Mapping[str, Rating], games: Iterable[Game], pinned: Collection[str]) -> JointRatings:
    """Fit the Bradley-Terry model to all games, on the scale of the pinned members.

    A score counts as a fraction of a win. The prior is normal, see `PRIOR` and `MEAN_DEVIATION`. The result is the mode
    of the posterior and the normal approximation there.

    Parameters
    ----------
    ratings
        By member. Those of the pinned members are given; the others are not used.
    games
        In any order.
    pinned
        Members whose ratings are given, at least one.

    Raises
    ------
    ConfigError
        Without a pinned member, for an unknown member, a game of a member against itself, and a score out of range.
    """
    place = _places(ratings, pinned)
    free = np.array([name not in pinned for name in place])
    given = np.array([(each.rating - PRIOR.rating) / SCALE for each in ratings.values()])
    strengths, covariance = _posterior(*_tally(place, games), given, free)
    return JointRatings(tuple(place), PRIOR.rating + SCALE * strengths, SCALE**2 * covariance)


def deviations(ratings: Mapping[str, Rating], games: Iterable[Game], pinned: Collection[str]) -> dict[str, float]:
    """Uncertainty of each rating, points: the larger of the Glicko-2 deviation and the one by `joint_ratings`.

    0 for pinned members. Raises `ConfigError` as `joint_ratings` does.
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
    """The next matches of a rating run; none once all deviations are at most the target, or no match would help.

    Play them and close a rating period before the next call. Members that are still training do not belong in a rating
    run, because their ratings are never final.

    Each match is the one with the largest expected reduction of the variances above the target's square, given the
    matches chosen before it. A newcomer plays against neighbours only, or against the nearest member. Every map is
    played from both sides. All pairs get the same maps in the same order, except for maps that the pair has already
    played. A match helps if each of its maps is expected to reduce a variance by `LEAST_GAIN`, and the pair's score
    leaves the result open, see `LEAST_INFORMATION`.

    Parameters
    ----------
    ratings
        By member.
    games
        All games so far, in any order.
    pinned
        Members that anchor the scale, at least one.
    target
        Deviation at which a rating counts as known, points, see `deviations`. It must be above 45, the smallest
        Glicko-2 deviation.
    matches
        Largest number of proposals; fewer if fewer are expected to suffice.
    maps
        Maps per match.
    seed
        Seed that the maps follow from.

    Returns
    -------
    Up to `matches` pairings. The same input gives the same result.

    Raises
    ------
    ConfigError
        As `joint_ratings` does; also for fewer than two members, and a target or number out of range.
    """
    if not DEVIATIONS[0] < target < np.inf:
        raise ConfigError(f"target: expected a deviation above {DEVIATIONS[0]:g} points, got {target!r}")
    matches, maps = check_integer("matches", matches), check_integer("maps", maps)
    if len(ratings) < 2:
        raise ConfigError(f"expected at least two members, got {len(ratings)}")
    joint = joint_ratings(ratings, games, pinned)
    covariance = _covariance(joint, ratings, pinned)
    rows, columns = np.triu_indices(len(ratings), 1)
    allowed = (_may_play(joint, games) & _informative(ratings, games))[rows, columns]
    rows, columns = rows[allowed], columns[allowed]
    ahead = joint.ratings[rows] - joint.ratings[columns]
    chosen: list[tuple[str, str]] = []
    while len(chosen) < matches and len(rows) and covariance.diagonal().max() > target**2:
        shared, weights = _effects(covariance, rows, columns, ahead, maps)
        before = np.maximum(covariance.diagonal(), target**2)
        after = np.maximum(covariance.diagonal() - weights[:, None] * shared**2, target**2)
        helps = _gains(covariance, rows, columns, ahead)[:, before > target**2].max(axis=1) >= LEAST_GAIN
        best = int(np.argmax(np.where(helps, np.sum(before - after, axis=1), 0.0)))
        if not helps[best]:
            break
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
    """(P, P) number of games of the row's member against the column's, and the sum of its scores."""
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
    """(P,) strengths, given or (where free) the posterior's mode, and their (P, P) covariance, in Glicko-2's units."""
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
    """(P, P) squared points; where Glicko-2 is less certain about a member, the difference is an independent error."""
    glicko = np.array([0 if name in pinned else each.deviation for name, each in ratings.items()])
    return np.asarray(joint.covariance + np.diag(np.maximum(glicko**2 - joint.covariance.diagonal(), 0)))


def _may_play(joint: JointRatings, games: Iterable[Game]) -> NDArray[np.bool_]:
    """(P, P) whether two members may play: a newcomer plays against neighbours or the nearest member only."""
    played = dict.fromkeys(joint.members, 0)
    for game in games:
        played[game.first] += 1
        played[game.second] += 1
    new = np.array([played[name] < NEWCOMER_GAMES for name in joint.members])
    distance = np.abs(np.subtract.outer(joint.ratings, joint.ratings))
    np.fill_diagonal(distance, np.inf)
    near = (distance <= NEIGHBOURHOOD) | (distance == distance.min(axis=1, keepdims=True))
    return np.asarray(~new[:, None] & ~new | near | near.T)


def _informative(ratings: Mapping[str, Rating], games: Iterable[Game]) -> NDArray[np.bool_]:
    """(P, P) whether the games so far between two members leave their result open, see `LEAST_INFORMATION`."""
    played, won = _tally({name: index for index, name in enumerate(ratings)}, games)
    share = (won + 0.5) / (played + 1)
    return np.asarray(share * (1 - share) >= LEAST_INFORMATION)


def _effects(
    covariance: NDArray[np.float64],
    rows: NDArray[np.intp],
    columns: NDArray[np.intp],
    ahead: NDArray[np.float64],
    maps: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Expected information of a match, for each of N pairs.

    Returns (N, P) covariances of all ratings with the pair's rating difference, and (N,) weights. A match reduces a
    member's variance by the weight times the squared covariance.
    """
    shared = covariance[rows] - covariance[columns]
    index = np.arange(len(rows))
    variance = np.maximum(shared[index, rows] - shared[index, columns], 0)
    damping = 1 / np.sqrt(1 + 3 * variance / (np.pi * SCALE) ** 2)
    score = expit(damping * ahead / SCALE)
    # slope of the expected score: the mean of p (1 - p) over the distribution of the difference
    information = maps * damping * score * (1 - score) / SCALE**2
    return shared, information / (1 + information * variance)


def _gains(
    covariance: NDArray[np.float64], rows: NDArray[np.intp], columns: NDArray[np.intp], ahead: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(N, P) expected share by which one map of each pair reduces each member's variance; 0 where there is none."""
    shared, weights = _effects(covariance, rows, columns, ahead, maps=1)
    variances = covariance.diagonal()
    return np.divide(weights[:, None] * shared**2, variances, out=np.zeros_like(shared), where=variances > 0)


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
