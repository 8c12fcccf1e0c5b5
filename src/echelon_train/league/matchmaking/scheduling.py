"""Rating runs: which matches to play next, so that as few as possible make every rating certain enough.

A Glicko-2 deviation measures the information in a member's own games, and treats the errors of its opponents' ratings
as independent. They are not: if few games connect the members to the anchor of the scale, all ratings share an error
of several times their deviations. So all games are also fitted jointly. A rating counts as known when both deviations
are small.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from echelon_env.config.schema import ConfigError, check_integer
from echelon_env.evaluate.seeds import evaluation_seed
from echelon_train.league.ratings.bradley_terry import Likelihood
from echelon_train.league.ratings.glicko2 import DEVIATIONS, SCALE, Rating
from echelon_train.league.ratings.results import Results

NEWCOMER_GAMES: Final = 20
"""A member with fewer games is a newcomer, which plays against neighbours only."""

NEIGHBOURHOOD: Final = 200.0
"""Largest difference between the ratings of neighbours, points."""

PRIOR: Final = Rating()
"""Prior of the ratings: the expected mean of all members, and the deviation of each member from their mean."""

LEAST_GAIN: Final = 0.001
"""Expected share by which a map must reduce a variance above the target."""

LEAST_INFORMATION: Final = 0.01
"""Least p (1 - p) of the score p between two members, by their games so far (49 that one has won are less). More games
of such a pair hardly reduce a variance, and the deviation of a member that loses to all others stays large."""

MEAN_DEVIATION: Final = 500.0
"""Prior deviation of the mean of all members, points. Without it, the mean of many members would be certain: 1500."""

_MOST_NUMBERS: Final = 1_000_000
"""Numbers that a choice between matches takes at a time: pairs times members. All pairs of 126 members have fewer."""

_REFRESH: Final = 5
"""Matches after which the upper bounds are computed again in larger leagues."""

Array = NDArray[np.float64]


class Pairing(NamedTuple):
    """A match to play."""

    first: str
    second: str
    seeds: tuple[int, ...]  # of its maps, each played from both sides


class _Pairs(NamedTuple):
    """The games of pairs, in arrays (pairs,)."""

    first: NDArray[np.intp]  # places of the members
    second: NDArray[np.intp]
    games: Array
    points: Array  # sums of the first's scores


@dataclass(frozen=True)
class JointRatings:
    """The ratings of P members that explain all games best, with their covariance."""

    members: tuple[str, ...]
    ratings: Array  # (P,) points
    covariance: Array  # (P, P) squared points; zeros for the pinned


def joint_ratings(ratings: Mapping[str, Rating], results: Results, pinned: Collection[str]) -> JointRatings:
    """Fit the Bradley-Terry model to the games of all members that are not pinned, on the scale of the pinned ones.

    A score counts as a fraction of a win. The prior is normal, see `PRIOR` and `MEAN_DEVIATION`. The result is the mode
    of the posterior and the normal approximation there. The ratings of members that are not pinned are not used. Raises
    ConfigError for a game of a member without a rating.
    """
    place = {name: index for index, name in enumerate(ratings)}
    free = np.array([name not in pinned for name in place])
    given = np.array([(each.rating - PRIOR.rating) / SCALE for each in ratings.values()])
    covariance = np.zeros((len(free), len(free)))
    size = int(np.count_nonzero(free))
    if not size:
        return JointRatings(tuple(place), PRIOR.rating + SCALE * given, covariance)
    first, second, games, points = _pairs(place, results, pinned)
    own, mean = (PRIOR.deviation / SCALE) ** 2, (MEAN_DEVIATION / SCALE) ** 2
    likelihood = Likelihood(
        np.append(first, second),
        np.append(second, first),
        np.append(points, games - points),
        np.append(games, games),
        own=1 / own,
        shared=mean / (own * (own + size * mean)),  # by Sherman-Morrison, as the mean is uncertain, too
        free=free,
    )
    strengths = likelihood.maximise(np.where(free, 0.0, given))
    covariance[np.ix_(free, free)] = np.linalg.inv(likelihood.information(strengths))
    return JointRatings(tuple(place), PRIOR.rating + SCALE * strengths, SCALE**2 * covariance)


def deviations(ratings: Mapping[str, Rating], results: Results, pinned: Collection[str]) -> dict[str, float]:
    """Uncertainty of each rating, points: the larger of the Glicko-2 deviation and the one by `joint_ratings`.

    0 for pinned members. Raises `ConfigError` as `joint_ratings` does.
    """
    joint = joint_ratings(ratings, results, pinned)
    return dict(zip(ratings, np.sqrt(_covariance(joint, ratings, pinned).diagonal()).tolist(), strict=True))


def propose_matches(
    ratings: Mapping[str, Rating],
    results: Results,
    pinned: Collection[str],
    *,
    used: Callable[[str, str], Collection[int]],
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
    ratings, results
        Of all members; all games so far.
    pinned
        Members that anchor the scale. Without any, only the prior does.
    used
        Returns the seeds of the maps that two members have played against each other.
    target
        Deviation at which a rating counts as known, points, see `deviations`. It must be above 45, the smallest
        Glicko-2 deviation.
    matches, maps
        Largest number of proposals, fewer if fewer are expected to suffice; and maps of each match.
    seed
        Seed that the maps follow from.

    Raises
    ------
    ConfigError
        As `joint_ratings` does; also for fewer than two members, and a target or number of maps out of range.
    """
    if not DEVIATIONS[0] < target < np.inf:
        raise ConfigError(f"target: expected a deviation above {DEVIATIONS[0]:g} points, got {target!r}")
    check_integer("maps", maps)
    if len(ratings) < 2:
        raise ConfigError(f"expected at least two members, got {len(ratings)}")
    joint = joint_ratings(ratings, results, pinned)
    covariance = _covariance(joint, ratings, pinned)
    candidates = _Candidates(joint, _may_play(joint, results) & _informative(joint, results), target, maps)
    chosen: list[tuple[str, str]] = []
    while len(chosen) < matches and covariance.diagonal().max() > target**2:
        found = candidates.best(covariance)
        if found is None:
            break
        first, second, reduction = found
        covariance = covariance - reduction
        chosen.append((joint.members[first], joint.members[second]))
    return _with_maps(chosen, used, maps, seed)


def _pairs(place: Mapping[str, int], results: Results, pinned: Collection[str]) -> _Pairs:
    """All pairs that have played and are not both pinned, in an order that does not depend on that of the results."""
    rows = []
    for name, index in place.items():
        if name in pinned:
            continue
        for opponent, (games, points) in results.of(name).items():
            if opponent not in place:
                raise ConfigError(f"games: expected two members that have ratings, got {name!r} and {opponent!r}")
            if opponent in pinned or index < place[opponent]:
                rows.append((index, place[opponent], games, points))
    columns = np.array(sorted(rows), dtype=np.float64).reshape(-1, 4).T
    return _Pairs(columns[0].astype(np.intp), columns[1].astype(np.intp), columns[2], columns[3])


def _covariance(joint: JointRatings, ratings: Mapping[str, Rating], pinned: Collection[str]) -> Array:
    """(P, P) squared points; where Glicko-2 is less certain about a member, the difference is an independent error."""
    glicko = np.array([0 if name in pinned else each.deviation for name, each in ratings.items()])
    return np.asarray(joint.covariance + np.diag(np.maximum(glicko**2 - joint.covariance.diagonal(), 0)))


def _may_play(joint: JointRatings, results: Results) -> NDArray[np.bool_]:
    """(P, P) whether two members may play: a newcomer plays against neighbours or the nearest member only."""
    new = np.array([results.games(name) < NEWCOMER_GAMES for name in joint.members])
    distance = np.abs(np.subtract.outer(joint.ratings, joint.ratings))
    np.fill_diagonal(distance, np.inf)
    near = (distance <= NEIGHBOURHOOD) | (distance == distance.min(axis=1, keepdims=True))
    return np.asarray(~new[:, None] & ~new | near | near.T)


def _informative(joint: JointRatings, results: Results) -> NDArray[np.bool_]:
    """(P, P) whether the games so far between two members leave their result open, see `LEAST_INFORMATION`."""
    first, second, games, points = _pairs({name: index for index, name in enumerate(joint.members)}, results, ())
    share = (points + 0.5) / (games + 1)
    informative = np.ones((len(joint.members), len(joint.members)), dtype=np.bool_)
    informative[first, second] = informative[second, first] = share * (1 - share) >= LEAST_INFORMATION
    return informative


class _Candidates:
    """The matches that may be played, to find the one with the largest expected reduction of the variances.

    What a match of each of N pairs does to each of P members takes N times P numbers. If these are more than
    `_MOST_NUMBERS`, it is computed for those pairs only whose reductions have the largest upper bounds.
    """

    def __init__(self, joint: JointRatings, allowed: NDArray[np.bool_], target: float, maps: int) -> None:
        self.rows, self.columns = np.nonzero(np.triu(allowed, 1))
        self.ahead = joint.ratings[self.rows] - joint.ratings[self.columns]
        self.known, self.maps = target**2, maps
        self.few = len(self.rows) * len(allowed) <= _MOST_NUMBERS
        self.chosen = np.arange(len(self.rows))
        self.age = _REFRESH

    def best(self, covariance: Array) -> tuple[int, int, Array] | None:
        """The members of the best match, and what it takes from the covariance (P, P); None if no match helps."""
        if self.few:
            return self._best(covariance)
        self.age += 1
        found = self._best(covariance) if self.age < _REFRESH else None
        if found is None:
            bounds = self._bounds(covariance)
            self.chosen = np.argsort(-bounds, kind="stable")[: _MOST_NUMBERS // len(covariance)]
            self.age = 0
            found = self._best(covariance)
        return found

    def _best(self, covariance: Array) -> tuple[int, int, Array] | None:
        """As `best`, among the chosen pairs."""
        if not self.chosen.size:
            return None
        rows, columns, ahead = self.rows[self.chosen], self.columns[self.chosen], self.ahead[self.chosen]
        variances = covariance.diagonal()
        shared = covariance[rows] - covariance[columns]
        index = np.arange(len(rows))
        variance = np.maximum(shared[index, rows] - shared[index, columns], 0)
        weights, single = (_weights(variance, ahead, maps)[:, None] for maps in (self.maps, 1))
        squares = shared**2
        before = np.maximum(variances, self.known)
        after = np.maximum(variances - weights * squares, self.known)
        open_ = variances > self.known
        gains = np.max(single * squares[:, open_] / variances[open_], axis=1, initial=0.0)
        helps = gains >= LEAST_GAIN
        best = int(np.argmax(np.where(helps, np.sum(before - after, axis=1), 0.0)))
        if not helps[best]:
            return None
        return int(rows[best]), int(columns[best]), weights[best] * np.outer(shared[best], shared[best])

    def _bounds(self, covariance: Array) -> Array:
        """(N,) at least the reduction of the variances by a match of each pair, but for rounding.

        The reductions of the pair's own variances are exact. Those of all others are not limited to what is above the
        target: their sum follows from the product of the covariance with itself.
        """
        above = covariance.diagonal() - self.known
        relevant = covariance[:, above > 0]
        relevant = (relevant - relevant.mean(axis=0)).astype(np.float32)  # all that matters is differences of rows
        product = relevant @ relevant.T
        rows, columns = self.rows, self.columns
        own, other, both = covariance[rows, rows], covariance[columns, columns], covariance[rows, columns]
        weights = _weights(np.maximum(own + other - 2 * both, 0), self.ahead, self.maps)
        squares = product[rows, rows] + product[columns, columns] - 2 * product[rows, columns]
        bounds = np.zeros(len(rows))
        for places, shared in ((rows, own - both), (columns, other - both)):
            excess = np.maximum(above[places], 0)
            bounds += np.minimum(excess, weights * shared**2)
            squares = squares - np.where(excess > 0, shared**2, 0)
        return np.asarray(bounds + weights * np.maximum(squares, 0))


def _weights(variance: Array, ahead: Array, maps: int) -> Array:
    """(N,) weights of matches: one reduces a variance by the weight times the squared covariance with the difference.

    `variance` is that of the pair's rating difference, and `ahead` its expected value.
    """
    damping = 1 / np.sqrt(1 + 3 * variance / (np.pi * SCALE) ** 2)
    score = expit(damping * ahead / SCALE)
    # slope of the expected score: the mean of p (1 - p) over the distribution of the difference
    information = maps * damping * score * (1 - score) / SCALE**2
    return np.asarray(information / (1 + information * variance))


def _with_maps(
    chosen: Iterable[tuple[str, str]], used: Callable[[str, str], Collection[int]], maps: int, seed: int
) -> list[Pairing]:
    known: dict[tuple[str, str], set[int]] = {}
    pairings = []
    for pair in chosen:
        if pair not in known:
            known[pair] = set(used(*pair))
        candidates = (evaluation_seed(seed, index) for index in itertools.count())
        fresh = tuple(itertools.islice((each for each in candidates if each not in known[pair]), maps))
        known[pair].update(fresh)
        pairings.append(Pairing(*pair, fresh))
    return pairings
