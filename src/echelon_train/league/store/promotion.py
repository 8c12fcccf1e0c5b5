"""Promotion: how a member becomes a league's champion.

A member succeeds the champion if its conservative score is higher and it did not significantly lose a validation match
against the champion. Ratings alone are not enough: a candidate is chosen because its games went well, some of them by
luck, and its rating may come from other opponents than the champion. Neither helps it in a match against the champion
on newly drawn maps.

A match is lost significantly if the whole interval of its score is below one half. The interval is
`echelon_env.evaluate.estimates.score_interval` and not Wilson's, because the two battles of a map are not independent.
With three maps or fewer, no match is lost significantly.

Every candidate plays one validation match during a champion's reign. Members do not change, so a second match would
only be another random draw. A league run in several scenarios has one in each of them, and the candidate loses none.
"""

from __future__ import annotations

import dataclasses
import math
import sqlite3
import uuid as uuids
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from echelon_env.evaluate.estimates import Interval, map_scores, score_interval
from echelon_train.league.errors import LeagueError
from echelon_train.league.ratings.glicko2 import Rating
from echelon_train.league.store.database import reading, writing
from echelon_train.league.store.members import Member, Promotion, insert_promotion, read_members, read_promotions
from echelon_train.league.store.periods import last_period, read_ratings
from echelon_train.league.store.records import PlayedMatch
from echelon_train.league.store.registry import League

EVEN_SCORE = 0.5

Play = Callable[[str, str], PlayedMatch]
"""Plays a match of a candidate (first) against a champion (second) on maps that are new to the pair."""


@dataclass(frozen=True)
class Decision:
    """The result of `promote`: what was compared, and whether the candidate is the champion now."""

    candidate: str
    champion: str | None  # before the decision; None if there was none
    k: float
    score: float  # conservative scores after the last period, points
    champion_score: float | None
    validation: PlayedMatch | None
    validation_score: Interval | None  # the candidate's, 0 to 1
    promotion: Promotion | None  # None if refused
    elsewhere: Mapping[str, Interval] = field(default_factory=dict)  # its scores in other scenarios, by their names

    @property
    def reason(self) -> str:
        """Why the candidate was promoted or refused, in one sentence."""
        own = f"its score of {self.score:.1f} (rating - {self.k:g} x deviation)"
        if self.champion_score is None or self.validation_score is None:
            return f"{self.candidate!r} is the first champion, with {own}"
        score = self.validation_score
        match = f"its validation match ({score.estimate:.3f}, {score.low:.3f} to {score.high:.3f})"
        if lost_significantly(score):
            return f"{self.candidate!r} is refused: it lost {match} against {self.champion!r} significantly"
        for scenario, found in self.elsewhere.items():
            if lost_significantly(found):
                match = f"its match in {scenario} ({found.estimate:.3f}, {found.low:.3f} to {found.high:.3f})"
                return f"{self.candidate!r} is refused: it lost {match} against {self.champion!r} significantly"
        if self.promotion is None:
            return (
                f"{self.candidate!r} is refused: {own} is not above the {self.champion_score:.1f} of {self.champion!r}"
            )
        above = f"is above the {self.champion_score:.1f} of {self.champion!r}"
        return f"{self.candidate!r} is champion: {own} {above}, and it did not lose {match} significantly"


def conservative_score(rating: Rating, k: float = 1.0) -> float:
    """A cautious estimate of a member's strength, points: its rating minus `k` deviations."""
    return rating.rating - k * rating.deviation


def lost_significantly(score: Interval) -> bool:
    """Whether a match was lost by more than chance: the interval of its score (0 to 1) is below one half."""
    return score.high < EVEN_SCORE


def promote(
    league: League, name: str, *, play: Play, k: float = 1.0, elsewhere: Mapping[str, Play] = MappingProxyType({})
) -> Decision:
    """Make a member the champion if it qualifies.

    The first champion needs only a rating. Every later candidate plays the validation match; the match is recorded, a
    period is closed, and the two are compared. After an interruption, the next call continues with the recorded match.
    For the champion itself, the call returns the decision that promoted it. The match counts for the ratings in any
    case. If another member becomes champion meanwhile, the candidate plays against that one.

    `play` plays the validation match, and `elsewhere` those in other scenarios, by their names. `k` is the number of
    deviations that are subtracted from a rating, at least 0.

    Raises
    ------
    ValueError
        For an invalid `k`, and if `play` returns another match.
    LeagueError
        For a member that is unknown, scripted or retired, or whose files are missing or altered; for the first
        champion, if no closed period has a game of it.
    """
    if not (math.isfinite(k) and k >= 0):
        raise ValueError(f"k: expected a number of at least 0, got {k!r}")
    league.member_policy(name)
    _check_active(league.member(name))
    reigns = league.promotions()
    if not reigns:
        return _decide(league, name, None, None, k) or promote(league, name, play=play, k=k, elsewhere=elsewhere)
    reign = reigns[-1]
    if reign.member == name:
        return _recorded_decision(league, reign)
    validation = _validation(league, name, reign, play)
    others: dict[str, PlayedMatch] = {}
    for scenario, play_there in elsewhere.items():
        if not any(lost_significantly(_score(each)) for each in (validation, *others.values())):
            others[scenario] = _validation(league, name, reign, play_there, scenario)
    if not all(_is_rated(league, each.uuid) for each in (validation, *others.values())):
        league.rate_matches()
    decision = _decide(league, name, reign, validation, k, others)
    return decision or promote(league, name, play=play, k=k, elsewhere=elsewhere)


def _validation(league: League, name: str, reign: Promotion, play: Play, scenario: str = "") -> PlayedMatch:
    """The validation match of a candidate against a champion's reign, played and recorded unless it already is."""
    members = league.member(name), league.member(reign.member)
    space = uuids.uuid5(uuids.NAMESPACE_OID, "echelon-env validation match")
    text = f"{members[0].weights_sha256} {members[1].weights_sha256} {reign.id} {scenario}".strip()
    uuid = str(uuids.uuid5(space, text))
    if _is_rated(league, uuid) is None:
        played = dataclasses.replace(play(name, reign.member), uuid=uuid)
        if (played.match.first, played.match.second) != (name, reign.member):
            raise ValueError(
                f"play: expected a match of {name!r} and {reign.member!r}, got one of {played.match.first!r} and "
                f"{played.match.second!r}"
            )
        try:
            league.record(played)
        except LeagueError:
            if _is_rated(league, uuid) is None:  # otherwise another process has recorded it
                raise
    return league.match(uuid)


def _check_active(member: Member) -> None:
    if member.state != "active":
        raise LeagueError(f"{member.name!r} is retired: it cannot become champion")


def _is_rated(league: League, uuid: str) -> bool | None:
    """Whether a match is in a closed period; None if it is not recorded."""
    with reading(league.path) as connection:
        last_match = last_period(connection)[1]
        row = connection.execute("SELECT id FROM matches WHERE uuid = ?", (uuid,)).fetchone()
    return None if row is None else bool(row[0] <= last_match)


def _decide(
    league: League,
    name: str,
    reign: Promotion | None,
    validation: PlayedMatch | None,
    k: float,
    others: Mapping[str, PlayedMatch] = MappingProxyType({}),
) -> Decision | None:
    """Compare a candidate with the champion by the last ratings, and promote it if it qualifies, in one transaction.

    Returns None, with nothing changed, if another reign has begun.
    """
    interval = None if validation is None else _score(validation)
    elsewhere = {scenario: _score(each) for scenario, each in others.items()}
    with writing(league.path) as connection:
        reigns = read_promotions(connection)
        if reigns and reigns[-1] != reign:
            return None
        period, ratings = _ratings(connection, name)
        score = conservative_score(ratings[name], k)
        champion, champion_score = None, None
        promoted = True
        if reign is not None and interval is not None:
            champion, champion_score = reign.member, conservative_score(ratings[reign.member], k)
            promoted = score > champion_score and not any(map(lost_significantly, (interval, *elsewhere.values())))
        promotion = None
        if promoted:
            uuid = None if validation is None else validation.uuid
            promotion = Promotion(len(reigns) + 1, name, champion, uuid, period, k, score, champion_score)
            insert_promotion(connection, promotion)
    return Decision(name, champion, k, score, champion_score, validation, interval, promotion, elsewhere)


def _ratings(connection: sqlite3.Connection, name: str) -> tuple[int, dict[str, Rating]]:
    """The last period and all ratings after it. Raises LeagueError if the candidate is retired or unrated."""
    member = next(member for member in read_members(connection) if member.name == name)
    _check_active(member)
    period, last_match = last_period(connection)
    played = connection.execute(
        "SELECT 1 FROM matches WHERE ? IN (first, second) AND id <= ? LIMIT 1", (member.id, last_match)
    )
    if played.fetchone() is None:
        raise LeagueError(f"{name!r} has no rating yet: no closed period has a game of it")
    return period, read_ratings(connection, period)


def _recorded_decision(league: League, reign: Promotion) -> Decision:
    """The decision that started a reign."""
    validation = None if reign.validation is None else league.match(reign.validation)
    return Decision(
        candidate=reign.member,
        champion=reign.previous,
        k=reign.k,
        score=reign.score,
        champion_score=reign.previous_score,
        validation=validation,
        validation_score=None if validation is None else _score(validation),
        promotion=reign,
    )


def _score(validation: PlayedMatch) -> Interval:
    """The candidate's score in a validation match."""
    return score_interval({None: map_scores(validation.match)})
