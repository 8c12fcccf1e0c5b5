"""Playing matches of a league for the record: pairings, and rating runs until all ratings are known."""

from __future__ import annotations

import contextlib
import itertools
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import check_integer
from echelon_env.evaluate import evaluation_seed
from echelon_train.league.errors import LeagueError
from echelon_train.league.matchmaking.scheduling import Game, deviations, propose_matches
from echelon_train.league.playing.executors import Executor
from echelon_train.league.playing.jobs import Job
from echelon_train.league.ratings.glicko2 import Rating
from echelon_train.league.store.records import PlayedMatch
from echelon_train.league.store.registry import League


@dataclass(frozen=True)
class RatingRun:
    """The result of a rating run."""

    matches: int  # played by it and recorded
    deviations: Mapping[str, float]  # of the participants, points, as by `scheduling.deviations`
    reached: bool  # whether all of these are at most the target


def pairing(
    league: League,
    first: str,
    second: str,
    config: BattleConfig,
    scenario: str,
    maps: int,
    seed: int | None = None,
) -> Job:
    """A match of two members on maps on which they have never played.

    Parameters
    ----------
    league
        Where they are members.
    first, second
        Their names.
    config
        The battle.
    scenario
        What to call it.
    maps
        How many, each from both sides.
    seed
        From which the maps follow, at least 0; with the same one every pair gets the same maps in the same order. By
        default no other match has them.

    Raises
    ------
    LeagueError
        For names that are no members', and for a member against itself.
    ConfigError
        For an impossible number of maps.
    ValueError
        For a seed below 0.
    """
    maps = check_integer("maps", maps)
    if first == second:
        raise LeagueError(f"expected two members, got {first!r} against itself")
    used = {battle.seed for played in league.matches(first, second) for battle in played.match.battles}
    own = secrets.randbits(63) if seed is None else seed
    candidates = (evaluation_seed(own, index) for index in itertools.count())
    fresh = itertools.islice((candidate for candidate in candidates if candidate not in used), maps)
    return Job(first, second, config, scenario, tuple(fresh))


def play_jobs(
    league: League, jobs: Sequence[Job], executor: Executor, on_match: Callable[[PlayedMatch], None] | None = None
) -> int:
    """Play matches and record each as soon as it is over; what is recorded stays, whatever happens next.

    Parameters
    ----------
    league
        Where to record them.
    jobs
        The matches.
    executor
        It plays them.
    on_match
        Called with every match that has just been recorded.

    Returns
    -------
    How many are new; one that comes twice, or that another process recorded first, counts once.

    Raises
    ------
    LeagueError, ValueError
        As the executor's `run` and `League.record`.
    OSError
        If the disk is full.
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
    config: BattleConfig,
    scenario: str,
    *,
    target_deviation: float,
    maps_per_match: int,
    max_matches: int,
    executor: Executor,
    members: Collection[str] | None = None,
    seed: int = 0,
    on_match: Callable[[PlayedMatch], None] | None = None,
) -> RatingRun:
    """Play until every rating is known well enough, with a rating period for every half as many matches as members.

    All of its state is in the league: calling this again continues a run that was ended at any moment. It first closes
    the period that was left open.

    Parameters
    ----------
    league
        Whose members are to be rated.
    config
        The battle.
    scenario
        What to call it.
    target_deviation
        At which a rating counts as known, points, see `scheduling.propose_matches`.
    maps_per_match
        Each is played from both sides.
    max_matches
        After which it ends in any case.
    executor
        It plays them.
    members
        The participants besides the anchor; by default all active members.
    seed
        From which the maps follow, at least 0; every pair gets the same ones in the same order.
    on_match
        Called with every match that has just been recorded.

    Raises
    ------
    LeagueError, ValueError, OSError
        As `play_jobs`; LeagueError also for names that are no members'.
    ConfigError
        For fewer than two members, and for a target or numbers out of range.
    """
    check_integer("max_matches", max_matches)
    names = _participants(league, members)
    pinned = (league.settings.anchor,)
    league.rate_matches()
    played = 0
    while True:
        ratings, games = _known(league, names)
        pairings = propose_matches(
            ratings,
            games,
            pinned,
            target=target_deviation,
            matches=max(1, min(len(names) // 2, max_matches - played)),
            maps=maps_per_match,
            seed=seed,
        )
        if not pairings or played >= max_matches:
            return RatingRun(played, deviations(ratings, games, pinned), not pairings)
        jobs = [Job(first, second, config, scenario, seeds) for first, second, seeds in pairings]
        played += play_jobs(league, jobs, executor, on_match)
        league.rate_matches()


def _participants(league: League, members: Collection[str] | None) -> set[str]:
    anchor = league.settings.anchor
    if members is None:
        return {member.name for member in league.members() if member.state == "active"}
    return {league.member(name).name for name in (*members, anchor)}


def _known(league: League, names: Collection[str]) -> tuple[dict[str, Rating], list[Game]]:
    """The ratings of some members, and the games among them."""
    ratings = {name: rating for name, rating in league.ratings().items() if name in names}
    games = [Game(*game) for game in league.games()]
    return ratings, [game for game in games if game.first in names and game.second in names]
