"""The effect of rating newcomers by all of their games: ``python -m benchmarks.league_placement --help``.

Simulated leagues of known strengths, the anchor among the weak, whose members all join at once, play a scheduled rating
run to its end. Ratings by Glicko-2 alone are compared with those where `rate_newcomers` corrects them, see
`echelon_train.league.matchmaking.provisional`.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.league_scheduling import Game, Population, explain, results_of, used_maps
from benchmarks.tables import Table, as_text
from echelon_train.league.matchmaking.provisional import rate_newcomers
from echelon_train.league.matchmaking.scheduling import deviations, propose_matches
from echelon_train.league.ratings.glicko2 import SCALE, Rating, rate_period
from echelon_train.league.store.periods import ANCHOR_RATING

MEMBERS, SPREAD = 8, 350.0
TARGET, MAPS = 75.0, 10  # of a rating run, as `echelon league play` has them
REACH = 1.96  # deviations of a 95 % interval


def main(arguments: list[str] | None = None) -> None:
    """Simulate and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.league_placement", description=__doc__)
    parser.add_argument("--leagues", type=int, default=20, help="to be drawn (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args(arguments)
    print(as_text(compare(options.leagues, options.seed)))


def compare(leagues: int, seed: int) -> Table:
    """Both ways over drawn leagues."""
    rows = {}
    for name, place in (("Glicko-2 alone", False), ("newcomers rated jointly", True)):
        found = [
            rating_run(draw(np.random.default_rng([seed, i])), np.random.default_rng([seed, i, 1]), place=place)
            for i in range(leagues)
        ]
        matches, error, reach, held = np.mean(found, axis=0)
        rows[name] = float(matches), float(error), 100 * float(reach), 100 * float(held)
    columns = "matches", "rms error, points", "of true distances, %", "in 95 % intervals, %"
    return Table("placement", f"Ratings after a rating run, {leagues} leagues", "mean", columns, rows)


def draw(generator: np.random.Generator) -> Population:
    """A league whose anchor is the second weakest."""
    strengths = generator.normal(0, SPREAD / SCALE, MEMBERS)
    weak = int(np.argsort(strengths)[1])
    strengths[[0, weak]] = strengths[[weak, 0]]
    ahead = np.subtract.outer(strengths, strengths)
    return Population(tuple(f"member {i}" for i in range(MEMBERS)), ahead, 1500 + SCALE * explain(ahead))


def rating_run(population: Population, generator: np.random.Generator, *, place: bool) -> tuple[float, ...]:
    """Matches, root mean square error, share of the true distances, share of intervals that hold the truth."""
    ratings = {name: Rating() for name in population.names} | dict.fromkeys(population.anchors, ANCHOR_RATING)
    games: list[Game] = []
    matches, batch = 0, MEMBERS // 2
    while max(deviations(ratings, results_of(games), population.anchors).values()) > TARGET:
        pairings = propose_matches(
            ratings, results_of(games), population.anchors,
            used=used_maps(games), target=TARGET, matches=batch, maps=MAPS, seed=0,
        )  # fmt: skip
        if not pairings:  # no match would help
            break
        played = [game for pairing in pairings for game in population.play(pairing, generator)]
        games += played
        matches += len(pairings)
        ratings = _rated(ratings, played, games, population.anchors, place=place)
    points, reach = (np.array([getattr(each, name) for each in ratings.values()]) for name in ("rating", "deviation"))
    return matches, population.error(points), *_truth(points, REACH * reach, population.points)


def _rated(
    before: dict[str, Rating], played: Sequence[Game], games: Sequence[Game], anchors: Collection[str], *, place: bool
) -> dict[str, Rating]:
    after = rate_period(before, (game[:3] for game in played), pinned=anchors)
    return rate_newcomers(after, results_of(games), anchors) if place else after


def _truth(points: NDArray[np.float64], reach: NDArray[np.float64], true: NDArray[np.float64]) -> tuple[float, float]:
    """The share of their true distances from the anchor that ratings have, and of the intervals that hold the truth."""
    distance, expected = points - points[0], true - true[0]
    return float(distance @ expected / (expected @ expected)), float(np.mean(np.abs(points - true)[1:] <= reach[1:]))


if __name__ == "__main__":
    main()
