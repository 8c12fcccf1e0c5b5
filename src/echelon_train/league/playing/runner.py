"""Matches that a league records: single pairings, and rating runs until all ratings are known."""

from __future__ import annotations

import contextlib
import itertools
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import check_integer
from echelon_env.evaluate import evaluation_seed, validation_seed
from echelon_train.league.errors import LeagueError
from echelon_train.league.matchmaking.scheduling import deviations, propose_matches
from echelon_train.league.playing.executors import Executor
from echelon_train.league.playing.jobs import Job
from echelon_train.league.ratings.glicko2 import Rating
from echelon_train.league.ratings.results import Results
from echelon_train.league.store.records import PlayedMatch
from echelon_train.league.store.registry import League

MOST_MATCHES: Final = 100
"""Most matches of a rating period in a rating run: many more would be chosen by ratings that are out of date."""


@dataclass(frozen=True)
class RatingRun:
    """The result of a rating run."""

    matches: int  # played and recorded by this run
    deviations: Mapping[str, float]  # of the participants, points, see `scheduling.deviations`
    reached: bool  # whether all of these are at most the target, but for those of `one_sided`
    one_sided: tuple[str, ...] = ()
    """Participants above the target that further matches would hardly help, such as members that lose all games."""


def pairing(
    league: League,
    first: str,
    second: str,
    config: BattleConfig,
    scenario: str,
    maps: int,
    seed: int | None = None,
) -> Job:
    """A match of two members on maps that they have not played against each other, each from both sides.

    The maps follow from the seed: all pairs get the same maps in the same order from it. By default it is random, and
    no other match has these maps.

    Raises LeagueError for an unknown member, and for a member against itself; ConfigError for an invalid number of
    maps; ValueError for a seed below 0.
    """
    maps = check_integer("maps", maps)
    if first == second:
        raise LeagueError(f"expected two members, got {first!r} against itself")
    used = league.maps(first, second)
    own = secrets.randbits(63) if seed is None else seed
    candidates = (evaluation_seed(own, index) for index in itertools.count())
    fresh = itertools.islice((candidate for candidate in candidates if candidate not in used), maps)
    return Job(first, second, config, scenario, tuple(fresh))


def play_jobs(
    league: League, jobs: Sequence[Job], executor: Executor, on_match: Callable[[PlayedMatch], None] | None = None
) -> int:
    """Play matches, and record each as soon as it is over. Recorded matches stay, whatever happens next.

    `on_match` is called with each match that was new to the league, after it is recorded. Returns their number.

    Raises LeagueError and ValueError as the executor's `run` and `League.record`; OSError if the disk is full.
    """
    new = 0
    with contextlib.closing(executor.run(league.path, jobs)) as matches:
        for played in matches:
            if league.record(played):
                new += 1
                if on_match is not None:
                    on_match(played)
    return new


def rating_run(
    league: League,
    battles: Mapping[str, BattleConfig],
    *,
    target_deviation: float,
    maps_per_match: int,
    max_matches: int,
    executor: Executor,
    members: Collection[str] | None = None,
    seed: int = 0,
    on_match: Callable[[PlayedMatch], None] | None = None,
) -> RatingRun:
    """Play matches until every rating is known as well as matches allow, and close a period after every few of them.

    A period has half as many pairings as there are members, at most `MOST_MATCHES`. The maps of a pairing are shared
    among the scenarios, with a match in each. All state is in the league, so a call continues a run that was
    stopped at any moment. It first closes the period that is still open.

    Parameters
    ----------
    battles
        The battles by the names of their scenarios.
    target_deviation
        Deviation at which a rating counts as known, points, see `scheduling.propose_matches`.
    maps_per_match, max_matches
        Number of maps of a pairing, each played from both sides; and of matches after which the run ends in any case.
    members
        Participants besides the anchor; by default all active members.
    seed
        Seed that the maps follow from, at least 0; all pairs get the same maps in the same order. An evaluation with
        this seed has other maps: ratings choose the champion.
    on_match
        Called with each match after it is recorded.

    Raises
    ------
    LeagueError, ValueError, OSError
        As `play_jobs`; LeagueError also for an unknown member.
    ConfigError
        For fewer than two members, and for a target or number out of range.
    """
    check_integer("max_matches", max_matches)
    check_integer("maps", maps_per_match, len(battles))
    names = _participants(league, members)
    pinned = (league.settings.anchor,)
    league.rate_matches()
    played = 0
    while True:
        ratings, results = _known(league, names)
        pairings = propose_matches(
            ratings,
            results,
            pinned,
            used=league.maps,
            target=target_deviation,
            matches=max(1, min(len(names) // 2, MOST_MATCHES, max_matches - played)),
            maps=maps_per_match,
            seed=validation_seed(seed),
        )
        if not pairings or played >= max_matches:
            found = deviations(ratings, results, pinned)
            above = () if pairings else tuple(name for name, each in found.items() if each > target_deviation)
            return RatingRun(played, found, not pairings, above)
        jobs = [
            Job(first, second, config, scenario, seeds[number :: len(battles)])
            for first, second, seeds in pairings
            for number, (scenario, config) in enumerate(battles.items())
        ]
        played += play_jobs(league, jobs, executor, on_match)
        league.rate_matches()


def uncertainty(league: League, names: Collection[str]) -> dict[str, float]:
    """Deviations of the ratings of members, points, as a rating run among them sees it; 0 for the anchor."""
    ratings, results = _known(league, {*names, league.settings.anchor})
    return deviations(ratings, results, (league.settings.anchor,))


def _participants(league: League, members: Collection[str] | None) -> set[str]:
    anchor = league.settings.anchor
    if members is None:
        return {member.name for member in league.members() if member.state == "active"}
    return {league.member(name).name for name in (*members, anchor)}


def _known(league: League, names: Collection[str]) -> tuple[dict[str, Rating], Results]:
    """The ratings of the named members, and the results among them."""
    ratings = {name: rating for name, rating in league.ratings().items() if name in names}
    return ratings, league.results(names)
