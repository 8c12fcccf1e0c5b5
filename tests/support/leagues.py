"""Leagues of known strengths, which play simulated matches until all ratings are known to the same certainty.

They are rated as leagues are, a period each time. Matches are those that `league.matchmaking.scheduling` proposes, or
round robin: rounds of the circle method, in which all members play once, again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import root
from scipy.special import expit

from echelon_train.league.matchmaking.provisional import rate_members
from echelon_train.league.matchmaking.scheduling import Pairing, deviations, joint_ratings, propose_matches
from echelon_train.league.ratings.glicko2 import SCALE, Rating, rate_period
from echelon_train.league.ratings.results import Results
from echelon_train.league.store.periods import ANCHOR_RATING

DRAWS = 0.4
"""Share of draws among the battles of equals."""

ALIKE = 0.3
"""Share of maps on which the second battle ends as the first did."""


class Game(NamedTuple):
    """One map of a match, played from both sides."""

    first: str
    second: str
    score: float  # of the first, 0 to 1
    seed: int  # of the map


def results_of(games: Iterable[Game]) -> Results:
    """The results of games."""
    return Results(game[:3] for game in games)


def used_maps(games: Iterable[Game]) -> Callable[[str, str], set[int]]:
    """A function that returns the maps of the games of two members."""
    return lambda *pair: {game.seed for game in games if {game.first, game.second} == {*pair}}


@dataclass(frozen=True)
class Population:
    """P members, the first of which anchors the scale at 1500 points."""

    names: tuple[str, ...]
    ahead: NDArray[np.float64]  # (P, P) logits of the row's expected score against the column, antisymmetric
    points: NDArray[np.float64]  # (P,) the ratings that explain an endless round robin best

    @property
    def anchors(self) -> tuple[str, ...]:
        return self.names[:1]

    def play(self, pairing: Pairing, generator: np.random.Generator) -> list[Game]:
        """The games of a match: every map from both sides."""
        ahead = self.ahead[self.names.index(pairing.first), self.names.index(pairing.second)]
        chance = expit(ahead)
        draws = 2 * DRAWS * chance * (1 - chance)
        luck = generator.random((len(pairing.seeds), 2))
        luck[:, 1] = np.where(generator.random(len(luck)) < ALIKE, luck[:, 0], luck[:, 1])
        scores = np.where(luck < chance - draws, 1.0, np.where(luck < chance + draws, 0.5, 0.0)).mean(axis=1)
        return [
            Game(pairing.first, pairing.second, float(score), seed)
            for score, seed in zip(scores, pairing.seeds, strict=True)
        ]

    def error(self, points: NDArray[np.float64]) -> float:
        """Root mean square of what the ratings of all but the anchor are off by, points."""
        return float(np.sqrt(np.mean((points - self.points)[1:] ** 2)))


def draw_population(generator: np.random.Generator, *, cyclic: bool) -> Population:
    """8 to 24 members with a spread of 100 to 350 points, the anchor among the middle ones.

    Cyclic ones are also rock, paper and scissors: points on a disc, each ahead of those clockwise of it, by up to 350
    points.
    """
    size, spread = int(generator.integers(8, 25)), generator.uniform(100, 350)
    strengths = generator.normal(0, spread / SCALE, size)
    middle = int(np.argsort(strengths)[size // 2])
    strengths[[0, middle]] = strengths[[middle, 0]]
    ahead = np.subtract.outer(strengths, strengths)
    if cyclic:
        angles, radii = generator.uniform(0, 2 * np.pi, size), np.sqrt(generator.uniform(0, 1, size))
        ahead = ahead + 2 * np.outer(radii, radii) * np.sin(np.subtract.outer(angles, angles))
    names = tuple(f"member {index}" for index in range(size))
    return Population(names, ahead, 1500 + SCALE * explain(ahead))


def draw_newcomers(generator: np.random.Generator) -> Population:
    """8 members with a spread of 350 points, the anchor the second weakest."""
    strengths = generator.normal(0, 350 / SCALE, 8)
    weak = int(np.argsort(strengths)[1])
    strengths[[0, weak]] = strengths[[weak, 0]]
    ahead = np.subtract.outer(strengths, strengths)
    return Population(tuple(f"member {i}" for i in range(8)), ahead, 1500 + SCALE * explain(ahead))


def explain(ahead: NDArray[np.float64]) -> NDArray[np.float64]:
    """(P,) strengths, the first 0, whose expected scores against all members sum to what the population scores."""
    scores = expit(ahead).sum(axis=1)

    def missing(strengths: NDArray[np.float64]) -> NDArray[np.float64]:
        full = np.append(0, strengths)
        return np.asarray((scores - expit(np.subtract.outer(full, full)).sum(axis=1))[1:])

    return np.append(0, root(missing, np.zeros(len(ahead) - 1), method="lm").x)


@dataclass(frozen=True)
class Outcome:
    """A rating run that has reached its target."""

    matches: int
    error: float  # of the joint ratings, see `Population.error`
    claimed: float  # root mean square of the members' deviations
    ratings: list[Rating]  # by Glicko-2, of all members


def rating_run(
    population: Population,
    target: float,
    maps: int,
    generator: np.random.Generator,
    *,
    scheduled: bool = True,
    corrected: bool = True,
    arriving: bool = False,
) -> Outcome:
    """Play until the deviations are at most the target, half as many matches at a time as there are members.

    Without `corrected` newcomers have the ratings of Glicko-2 alone. `arriving` members join one after another, each
    when the ratings of those before it are known.
    """
    names, anchors = population.names, population.anchors
    waiting = [*names[2:]] if arriving else []
    ratings = {anchors[0]: ANCHOR_RATING} | {name: Rating() for name in names[1:] if name not in waiting}
    games: list[Game] = []
    matches, rounds = 0, round_robin(names, maps)
    while True:
        known = deviations(ratings, results_of(games), anchors)
        batch, pairings = max(1, len(ratings) // 2), list[Pairing]()
        if max(known.values()) > target and scheduled:
            pairings = propose_matches(
                ratings, results_of(games), anchors,
                used=used_maps(games), target=target, matches=batch, maps=maps, seed=0,
            )  # fmt: skip
        elif max(known.values()) > target:
            pairings = [next(rounds) for _ in range(batch)]
        if not pairings and not waiting:
            break
        if not pairings:
            ratings[waiting.pop(0)] = Rating()
            continue
        played = [game for pairing in pairings for game in population.play(pairing, generator)]
        games += played
        if corrected:
            ratings = rate_members(ratings, results_of(played), results_of(games), pinned=anchors)
        else:
            ratings = rate_period(ratings, results_of(played), pinned=anchors)
        matches += len(pairings)
    joint = joint_ratings(ratings, results_of(games), anchors)
    claimed = float(np.sqrt(np.mean(np.square(list(known.values())[1:]))))
    return Outcome(matches, population.error(joint.ratings), claimed, [*ratings.values()])


def round_robin(names: Sequence[str], maps: int) -> Iterator[Pairing]:
    """Rounds in which all members play once, by the circle method, without end."""
    circle = [*names] if len(names) % 2 == 0 else [*names, ""]
    seeds = count()
    while True:
        for first, second in zip(circle[: len(circle) // 2], reversed(circle), strict=False):
            if first and second:
                yield Pairing(first, second, tuple(islice(seeds, maps)))
        circle.insert(1, circle.pop())
