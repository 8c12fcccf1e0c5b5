"""Rating matches, promotions and retirement, in a thread of the supervisor."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import threading
from collections.abc import Callable, Collection, Mapping, Sequence

from echelon_env.evaluate.tables import format_share
from echelon_train.config.train import TrainConfig
from echelon_train.errors import TrainError
from echelon_train.league.errors import LeagueError
from echelon_train.league.exploitability import exploitability, exploiters, is_more_exploitable
from echelon_train.league.playing.battle_choice import battle_name
from echelon_train.league.playing.executors import Executor
from echelon_train.league.playing.runner import pairing, rating_run
from echelon_train.league.ratings.glicko2 import Rating
from echelon_train.league.store.members import Member
from echelon_train.league.store.promotion import conservative_score, promote
from echelon_train.league.store.records import PlayedMatch
from echelon_train.league.store.registry import League
from echelon_train.supervisor.plan import LeaguePlan
from echelon_train.supervisor.tasks import FIRST_PAUSE, LAST_PAUSE

VALIDATION_MAPS = 50
"""Maps of a candidate's match against the champion."""

_IDLE = 5.0  # s between two looks at the members


class Ratings:
    """Plays rating matches whenever a rating is uncertain; then promotes the best policy and retires the weakest.

    An error is reported, and the work is tried again after a pause. It runs in a thread between `start` and `join`. The
    matches are in all scenarios of the run config `config`. `report` takes a line about what has happened.
    """

    def __init__(
        self, league: League, plan: LeaguePlan, config: TrainConfig, executor: Executor, report: Callable[[str], None]
    ) -> None:
        self._league, self._plan = league, plan
        self._battles = {battle_name(config.battle): config.battle}
        self._battles |= {each.name: each.config for each in config.extra_scenarios if each.config != config.battle}
        self._executor, self._report = executor, report
        self._stop = threading.Event()
        self._unusable: set[str] = set()
        self._decided: set[tuple[str, str | None]] = set()  # candidates and champions of decisions that were reported
        self._thread = threading.Thread(target=self._loop, name="ratings", daemon=True)
        self.status = "starting"
        """What it does, for display."""
        self.matches = 0
        """Matches that it has recorded."""
        self.eligible: frozenset[str] = frozenset()
        """Policies that are candidates for the title, if they are good enough."""
        self.waited = 0
        """Eligible snapshots of main agents since the champion's."""

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the match in progress."""
        self._stop.set()

    def join(self, seconds: float) -> bool:
        """Wait for the end; returns whether it came within that time."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _loop(self) -> None:
        pause = FIRST_PAUSE
        while not self._stop.is_set():
            try:
                with contextlib.suppress(_StoppedError):
                    self._work()
                pause = FIRST_PAUSE
            except Exception as error:  # training goes on
                reason = str(error) if isinstance(error, (TrainError, ValueError, OSError)) else repr(error)
                self.status = f"failed: {reason}"
                self._report(f"ratings: {reason}; tried again in {pause:g} s")
                self._stop.wait(pause)
                pause = min(2 * pause, LAST_PAUSE)
        self.status = "stopped"

    def _work(self) -> None:
        """Play a few matches, then decide about the champion and retirement. If all ratings are known, wait."""
        plan, league = self._plan, self._league
        members = league.members()
        active = [each.name for each in members if each.state == "active" and self._is_usable(each)]
        known, settled = len(active) < 2, frozenset[str]()
        self._measure()
        if not known:
            self.status = "rating matches"
            result = rating_run(
                league,
                self._battles,
                target_deviation=plan.until_rd,
                maps_per_match=plan.maps,
                max_matches=max(1, len(active) // 2),  # one rating period; then the members are read again
                executor=self._executor,
                members=active,
                on_match=self._on_match,
            )
            known, settled = result.reached, frozenset(result.one_sided)
            self._promote(settled)
            retire_weakest(league, plan, self._report, settled)
        self._count(settled)
        if known:
            self.status = "all ratings are known"
            while not self._stop.wait(_IDLE) and len(league.members()) == len(members):
                pass

    def _count(self, settled: Collection[str]) -> None:
        champion = self._league.champion()
        eligible = eligible_policies(self._league, self._plan, settled)
        later = [each for each in eligible if each.kind == "main" and champion is not None and each.id > champion.id]
        self.waited, self.eligible = len(later), frozenset(each.name for each in eligible)

    def _measure(self) -> None:
        """Play the matches of exploiters against the members that they were trained against."""
        for exploiter, member in exploiters(self._league):
            both = [self._league.member(name) for name in (exploiter, member)]
            if not all(each.state == "active" and self._is_usable(each) for each in both):
                continue
            missing = self._unplayed(exploiter, member)
            for scenario, maps in missing.items():
                if self._stop.is_set():
                    return
                self.status = f"{exploiter} plays against {member}"
                self._league.record(self._validate(exploiter, member, scenario, maps))
                self.matches += 1
            if missing:
                score = format_share(dataclasses.asdict(exploitability(self._league)[member]))
                self._report(f"a best response scores {score} % against {member}")

    def _unplayed(self, exploiter: str, member: str) -> dict[str, int]:
        """The maps that an exploiter has still to play against a member, by scenario."""
        maps = dict.fromkeys(self._battles, VALIDATION_MAPS // len(self._battles))
        for played in self._league.matches(exploiter, member):
            if played.match.scenario in maps:
                maps[played.match.scenario] -= len(played.match.battles) // 2
        return {scenario: number for scenario, number in maps.items() if number > 0}

    def _is_usable(self, member: Member) -> bool:
        """Whether the files of a member are as they joined. One that is not is reported once, and plays no matches."""
        if member.weights_sha256 is None:
            return True
        try:
            self._league.member_policy(member.name)
        except LeagueError as error:
            if member.name not in self._unusable:
                self._unusable.add(member.name)
                self._report(f"a member plays no matches: {error}")
            return False
        self._unusable.discard(member.name)
        return True

    def _promote(self, settled: Collection[str]) -> None:
        """Promote the best policy of those whose conservative scores are above the champion's, unless all lose."""
        plays = {
            scenario: functools.partial(self._validate, scenario=scenario, maps=VALIDATION_MAPS)
            for scenario in self._battles
        }
        play = plays.pop(next(iter(self._battles)))
        for candidate in promotion_candidates(self._league, self._plan, settled):
            self.status = f"{candidate} plays for the title"
            decision = promote(self._league, candidate, play=play, k=self._plan.k, elsewhere=plays)
            reported = (candidate, decision.champion)
            if reported not in self._decided:
                self._decided.add(reported)
                self._report(decision.reason)
            if decision.promotion is not None:
                break

    def _validate(self, first: str, second: str, scenario: str, maps: int) -> PlayedMatch:
        job = pairing(self._league, first, second, self._battles[scenario], scenario, maps)
        with contextlib.closing(self._executor.run(self._league.path, [job])) as played:
            return next(played)

    def _on_match(self, played: PlayedMatch) -> None:
        self.matches += 1
        self.status = f"last match {played.match.first} v {played.match.second}"
        if self._stop.is_set():
            raise _StoppedError


class _StoppedError(Exception):
    """The supervisor ends."""


def promotion_candidates(league: League, plan: LeaguePlan, settled: Collection[str] = ()) -> list[str]:
    """The active policies with conservative scores above the champion's, the highest first.

    They are eligible, and in a run with exploiters do not lose more to their own than the champion. `settled` is as in
    `eligible_policies`.
    """
    policies = [each for each in eligible_policies(league, plan, settled) if each.state == "active"]
    ratings, champion = league.ratings(), league.champion()
    scored = exploitability(league) if plan.exploiter else {}
    own = scored.get(champion.name) if champion else None
    scores = {
        each.name: conservative_score(ratings[each.name], plan.k)
        for each in policies
        if not (own and is_more_exploitable(scored[each.name], own))
    }
    least = conservative_score(ratings[champion.name], plan.k) if champion else -math.inf
    return sorted((name for name in scores if scores[name] > least), key=lambda name: -scores[name])


def eligible_policies(league: League, plan: LeaguePlan, settled: Collection[str] = ()) -> list[Member]:
    """The policies whose rating is known, and against which, in a run with exploiters, one of them has played.

    Ratings with a deviation above `LeaguePlan.until_rd` are not known, but for those of the members `settled`, which
    further matches would not help.
    """
    members = league.members()  # before the ratings, which have all of them then
    known = _known_policies(members, league.ratings(), plan.until_rd, settled)
    scored = exploitability(league) if plan.exploiter else {}
    return [each for each in known if each.name in scored] if plan.exploiter else known


def retire_weakest(
    league: League, plan: LeaguePlan, report: Callable[[str], None], settled: Collection[str] = ()
) -> None:  # fmt: skip
    """Retire policies, the lowest rating first, until at most `LeaguePlan.active` are active.

    The champion, the start policy, the newest snapshot of every learner, and policies whose rating is not known stay.
    `settled` is as in `eligible_policies`.
    """
    members, ratings, champion = league.members(), league.ratings(), league.champion()
    count = sum(each.state == "active" and each.weights_sha256 is not None for each in members)
    kept = {plan.start, champion.name if champion else ""} | {each.name for each in newest_snapshots(members)}
    known = [each for each in _known_policies(members, ratings, plan.until_rd, settled) if each.name not in kept]
    known = [each for each in known if each.state == "active"]
    known.sort(key=lambda each: (ratings[each.name].rating, each.id))
    for each in known[: max(0, count - plan.active)]:
        league.retire(each.name)
        report(f"{each.name} is retired, the weakest of {count} active policies, of which {plan.active} stay")


def _known_policies(
    members: Sequence[Member], ratings: Mapping[str, Rating], known: float, settled: Collection[str]
) -> list[Member]:
    policies = [each for each in members if each.weights_sha256 is not None]
    return [each for each in policies if ratings[each.name].deviation <= known or each.name in settled]


def newest_snapshots(members: list[Member]) -> list[Member]:
    """The newest snapshot of every learner."""
    newest = {
        (each.kind, each.name.rpartition("-")[0]): each for each in members if each.kind not in ("scripted", "past")
    }
    return [*newest.values()]
