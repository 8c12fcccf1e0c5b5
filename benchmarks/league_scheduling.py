"""How many matches a scheduled rating run saves: ``python -m benchmarks.league_scheduling --help``.

Populations of known strengths play simulated matches until every rating is known to the same certainty, once as
`league.matchmaking.scheduling` proposes and once round robin: rounds of the circle method, in which all members play
once, again and again. Both are compared after equally many matches, and are rated as leagues are, a period each time.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import root
from scipy.special import expit
from scipy.stats import bootstrap

from benchmarks.tables import Table, as_text
from benchmarks.timing import tell
from echelon_train.league.matchmaking.provisional import rate_newcomers
from echelon_train.league.matchmaking.scheduling import Pairing, deviations, joint_ratings, propose_matches
from echelon_train.league.ratings.glicko2 import DEVIATIONS, SCALE, Rating, rate_period
from echelon_train.league.ratings.results import Results

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
    glicko_error: float  # of the ratings by Glicko-2


def rating_run(
    population: Population, target: float, maps: int, generator: np.random.Generator, *, scheduled: bool
) -> Outcome:
    """Play until the deviations are at most the target, half as many matches at a time as there are members."""
    names, anchors = population.names, population.anchors
    ratings = {name: Rating() for name in names} | {anchors[0]: Rating(1500, DEVIATIONS[0])}
    games: list[Game] = []
    matches, batch, rounds = 0, len(names) // 2, round_robin(names, maps)
    while max((known := deviations(ratings, results_of(games), anchors)).values()) > target:
        if scheduled:
            pairings = propose_matches(
                ratings, results_of(games), anchors,
                used=used_maps(games), target=target, matches=batch, maps=maps, seed=0,
            )  # fmt: skip
        else:
            pairings = [next(rounds) for _ in range(batch)]
        if not pairings:  # no match would help
            break
        played = [game for pairing in pairings for game in population.play(pairing, generator)]
        games += played
        rated = rate_period(ratings, [game[:3] for game in played], pinned=anchors)
        ratings = rate_newcomers(rated, results_of(games), anchors)
        matches += len(pairings)
    joint = joint_ratings(ratings, results_of(games), anchors)
    claimed = float(np.sqrt(np.mean(np.square(list(known.values())[1:]))))
    glicko = np.array([rating.rating for rating in ratings.values()])
    return Outcome(matches, population.error(joint.ratings), claimed, population.error(glicko))


def round_robin(names: Sequence[str], maps: int) -> Iterator[Pairing]:
    """Rounds in which all members play once, by the circle method, without end."""
    circle = [*names] if len(names) % 2 == 0 else [*names, ""]
    seeds = count()
    while True:
        for first, second in zip(circle[: len(circle) // 2], reversed(circle), strict=False):
            if first and second:
                yield Pairing(first, second, tuple(islice(seeds, maps)))
        circle.insert(1, circle.pop())


def compare(populations: int, target: float, maps: int, seed: int) -> list[Table]:
    """Both ways over drawn populations, every second one cyclic."""
    rows: dict[str, list[tuple[Outcome, Outcome]]] = {"transitive": [], "cyclic": []}
    for index in range(populations):
        kind = list(rows)[index % 2]
        population = draw_population(np.random.default_rng([seed, index]), cyclic=kind == "cyclic")
        runs = [
            rating_run(population, target, maps, np.random.default_rng([seed, index, 1]), scheduled=scheduled)
            for scheduled in (False, True)
        ]
        rows[kind].append((runs[0], runs[1]))
        tell(f"{index + 1} of {populations}: {runs[0].matches} matches round robin, {runs[1].matches} scheduled")
    rows["all"] = rows["transitive"] + rows["cyclic"]
    return [
        Table(
            "matches", f"Matches until all ratings are known to {target:g} points, {maps} maps each", "mean",
            ("populations", "round robin", "scheduled", "fewer, %", "from", "to"),
            {kind: _savings(pairs, seed) for kind, pairs in rows.items()},
            ("from, to: 95 % interval of the mean saving, by bootstrap over populations",),
        ),
        Table(
            "errors", "What the ratings are off by in the end", "points, root mean square",
            ("claimed", "round robin", "Glicko-2", "claimed ", "scheduled", "Glicko-2 "),
            {kind: _errors(pairs) for kind, pairs in rows.items()},
        ),
    ]  # fmt: skip


def _savings(pairs: Sequence[tuple[Outcome, Outcome]], seed: int) -> tuple[float, ...]:
    fewer = np.array([100 * (1 - scheduled.matches / robin.matches) for robin, scheduled in pairs])
    interval = bootstrap((fewer,), np.mean, rng=np.random.default_rng(seed)).confidence_interval
    matches = np.mean([[robin.matches, scheduled.matches] for robin, scheduled in pairs], axis=0)
    return (len(pairs), *matches.tolist(), float(fewer.mean()), float(interval.low), float(interval.high))


def _errors(pairs: Sequence[tuple[Outcome, Outcome]]) -> tuple[float, ...]:
    errors = [[(each.claimed, each.error, each.glicko_error) for each in pair] for pair in pairs]
    return tuple(np.sqrt(np.mean(np.square(errors), axis=0)).ravel().tolist())


def main(arguments: list[str] | None = None) -> None:
    """Compare and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.league_scheduling", description=__doc__)
    parser.add_argument("--populations", type=int, default=40, help="at least 4, every second one cyclic (default: 40)")
    parser.add_argument("--target", type=float, default=75.0, help="deviation in points (default: 75)")
    parser.add_argument("--maps", type=int, default=4, help="maps of a match (default: 4)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if options.populations < 4:
        parser.error(f"--populations: expected at least 4, got {options.populations}")
    for table in compare(options.populations, options.target, options.maps, options.seed):
        print("", as_text(table), *table.notes, sep="\n")


if __name__ == "__main__":
    main()
