"""The registry of a league: its members, their matches and their ratings.

A league is a folder::

    league.db                              SQLite, see schema.sql and `database`
    members/<SHA-256 of the weights>/      policy.safetensors and checkpoint.json of each policy, see `members`

Events (members, matches, periods, promotions) are only ever added, each in one transaction. Ratings are derived from
them and can be computed again. Any number of processes may use a league at once. Events are ordered by ids,
never by the clock.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from echelon_env.config.schema import nearest_name, to_plain
from echelon_env.evaluate import BASELINES
from echelon_env.storage.atomic import new_folder
from echelon_train.league.errors import DamagedLeagueError, LeagueError
from echelon_train.league.ratings.glicko2 import Rating
from echelon_train.league.ratings.results import Results
from echelon_train.league.store import periods, records
from echelon_train.league.store.database import check_integrity, create_database, reading, writing
from echelon_train.league.store.members import (
    MEMBERS_FOLDER,
    Member,
    Promotion,
    check_files,
    check_kind,
    check_name,
    insert_member,
    member_folder,
    now,
    place_files,
    read_candidate,
    read_members,
    read_promotions,
)
from echelon_train.league.store.periods import LeagueSettings
from echelon_train.league.store.records import PlayedMatch

T = TypeVar("T")


@dataclass(frozen=True)
class Standing:
    """A member's place in a league."""

    member: Member
    rating: Rating  # after the last period
    games: int  # maps played, also those of unrated matches
    score: float  # mean over these games, 0 to 1; NaN without games


class League:
    """A league in a folder, made by `create` or `open`. It keeps nothing open and can be sent to other processes.

    Every method raises LeagueError if the league is damaged or another process keeps it locked for a minute, and
    OSError if the disk is full or fails.
    """

    def __init__(self, path: Path, settings: LeagueSettings) -> None:
        self.path = path
        self.settings = settings

    @classmethod
    def create(cls, path: Path, settings: LeagueSettings | None = None) -> League:
        """Create a league in a new folder, with the anchor as its only member. Raises FileExistsError, OSError."""
        settings = settings or LeagueSettings()
        with new_folder(path) as temporary:
            (temporary / MEMBERS_FOLDER).mkdir()
            create_database(temporary, json.dumps(to_plain(settings)))
            cls(temporary, settings).add_scripted(settings.anchor)
        return cls(path, settings)

    @classmethod
    def open(cls, path: Path) -> League:
        """Open a league. Raises LeagueError, with the reason, if it is missing, damaged or of another version."""
        with reading(path) as connection:
            problems = check_integrity(connection, quick=True)
            if problems:
                raise DamagedLeagueError(f"{path}: damaged: {problems[0]}; fsck says more")
            return cls(path, periods.read_settings(path, connection))

    def add_scripted(self, level: str) -> Member:
        """Add a scripted player, one of `echelon_env.evaluate.BASELINES`, as a member with its name.

        Raises LeagueError for an unknown player, and for one that is a member already.
        """
        if level not in BASELINES:
            raise LeagueError(f"unknown scripted player {level!r}{nearest_name(level, BASELINES)}")
        with writing(self.path) as connection:
            if level in _by_name(connection):
                raise LeagueError(f"{level!r} is a member already")
            member = Member(0, level, "scripted", "active", None, 0, None, None, now(), {"level": level})
            return replace(member, id=insert_member(connection, member, None))

    def add_checkpoint(
        self, path: Path, kind: str, name: str | None = None, parent: str | None = None, *, numbered: bool = False
    ) -> Member:
        """Add the policy of a checkpoint, or of a run's last checkpoint, as a member. Its files are copied.

        The kind is ``main``, ``exploiter`` or ``past``, and `parent` names the member that it was trained from: an
        exploiter's victim. By default the name is the kind and a number; a `numbered` name gets a number, too: the
        smallest, from 1, that makes it new.

        Raises
        ------
        CheckpointError
            For a checkpoint that is missing, foreign or damaged.
        LeagueError
            If a member has the same weights or name already; for an invalid kind or name, a parent that is no member,
            or an exploiter without one.
        """
        checked_kind = check_kind(kind)
        if checked_kind == "exploiter" and parent is None:
            raise LeagueError("parent: expected the member that the exploiter was trained against")
        candidate = read_candidate(path)
        with writing(self.path) as connection:
            members = _by_name(connection)
            for other in members.values():
                if other.weights_sha256 == candidate.weights_sha256:
                    raise LeagueError(f"{path}: its weights are those of the member {other.name!r}")
            if numbered or name is None:
                stem = name or checked_kind
                name = next(each for n in itertools.count(1) if (each := f"{stem}-{n}") not in members)
            check_name(name)
            if name in members:
                raise LeagueError(f"name {name!r}: another member has it")
            parent_id = None if parent is None else _known(members, parent).id
            member = Member(
                id=0,
                name=name,
                kind=checked_kind,
                state="active",
                parent=parent,
                age=candidate.age,
                weights_sha256=candidate.weights_sha256,
                document_sha256=candidate.document_sha256,
                created_at=now(),
                origin=candidate.origin,
            )
            member = replace(member, id=insert_member(connection, member, parent_id))
            place_files(self.path, candidate)
        return member

    def retire(self, name: str) -> None:
        """Retire a member. Its matches stay, and a match in progress can still be recorded.

        Retiring it again changes nothing. Raises LeagueError for an unknown member, the anchor and the champion.
        """
        with writing(self.path) as connection:
            member = _known(_by_name(connection), name)
            if name == self.settings.anchor:
                raise LeagueError(f"{name!r} is the anchor, from which all ratings are measured: it cannot retire")
            if name == _champion(connection):
                raise LeagueError(f"{name!r} is the champion: it cannot retire before another one is promoted")
            connection.execute("UPDATE members SET state = 'retired' WHERE id = ?", (member.id,))

    def members(self) -> list[Member]:
        """All members in the order of joining."""
        with reading(self.path) as connection:
            return read_members(connection)

    def member(self, name: str) -> Member:
        """A member by its name. Raises LeagueError for an unknown one."""
        with reading(self.path) as connection:
            return _known(_by_name(connection), name)

    def champion(self) -> Member | None:
        """The member that was promoted last; None before the first promotion."""
        with reading(self.path) as connection:
            name = _champion(connection)
            return None if name is None else _by_name(connection)[name]

    def promotions(self) -> list[Promotion]:
        """All promotions in their order, made by `promotion.promote`."""
        with reading(self.path) as connection:
            return read_promotions(connection)

    def member_policy(self, name: str) -> Path:
        """Check the files of a member, and return its checkpoint for `load_checkpoint` and `checkpoint_player`.

        Raises LeagueError for an unknown or scripted member, and for one whose files are missing or altered.
        """
        member = self.member(name)
        if member.weights_sha256 is None:
            raise LeagueError(f"{name!r} is scripted: it has no policy")
        problems = check_files(self.path, member)
        if problems:
            raise LeagueError(f"{name!r} cannot be used: {'; '.join(problems)}")
        return member_folder(self.path, member.weights_sha256)

    def record(self, played: PlayedMatch) -> bool:
        """Record a match permanently.

        Returns whether it is new: the same match with the same uuid changes nothing. Raises LeagueError for another
        match with a recorded uuid, a recorded match with another uuid, players that are no members, and an incomplete
        match.
        """
        with writing(self.path) as connection:
            members = _by_name(connection)
            row = records.to_row(played, members)
            content = row.content_sha256
            before = connection.execute("SELECT content_sha256 FROM matches WHERE uuid = ?", (row.uuid,)).fetchone()
            if before is not None:
                if before[0] != content:
                    raise LeagueError(f"match {row.uuid}: is already recorded, with other content")
                return False
            same = connection.execute("SELECT uuid FROM matches WHERE content_sha256 = ?", (content,)).fetchone()
            if same is not None:
                raise LeagueError(f"match {row.uuid}: is match {same[0]} played again: it would be counted twice")
            records.insert_match(connection, row, played, members)
            return True

    def matches(self, *names: str, last: int | None = None) -> list[PlayedMatch]:
        """The matches of all the named members in the order of recording; of these the `last`, or all.

        Raises LeagueError for an unknown member.
        """
        with reading(self.path) as connection:
            members = _by_name(connection)
            ids = [_known(members, name).id for name in names]
            where = " AND ".join(["? IN (m.first, m.second)"] * len(ids)) or "1"
            if last is not None:
                where = f"m.id IN (SELECT id FROM matches m WHERE {where} ORDER BY id DESC LIMIT {last:d})"
            return records.read_matches(connection, where, ids)

    def match(self, uuid: str) -> PlayedMatch:
        """A match by its uuid, or by a prefix that no other uuid has. Raises LeagueError if there is no such match."""
        with reading(self.path) as connection:
            begins = "m.uuid >= ?1 AND m.uuid < ?1 || 'g'"  # the index finds it; after a hexadecimal digit comes no g
            (count,) = connection.execute(f"SELECT COUNT(*) FROM matches m WHERE {begins}", [uuid]).fetchone()
            if count != 1:
                raise LeagueError(
                    f"match {uuid!r}: expected the uuid of a match or a unique prefix, {count} matches have it"
                )
            return records.read_matches(connection, begins, [uuid])[0]

    def pair_scores(self) -> dict[tuple[str, str], list[float]]:
        """(first, second) -> the first's scores in all of their games, as `payoffs` takes them.

        The first is the member that joined earlier. A game is one map of a match; its score is the mean of the two
        battles: one of 0, 1/4, 1/2, 3/4 and 1.
        """
        with reading(self.path) as connection:
            return records.read_pair_scores(connection)

    def results(self, names: Collection[str] | None = None) -> Results:
        """The sums of the scores of all pairs, or of those among the named members."""
        with reading(self.path) as connection:
            return records.read_results(connection, names=names)

    def maps(self, first: str, second: str) -> set[int]:
        """The seeds of the maps that two members have played against each other.

        Raises LeagueError for an unknown member.
        """
        with reading(self.path) as connection:
            ids: dict[str, int] = dict(connection.execute("SELECT name, id FROM members"))
            return records.read_maps(connection, _known(ids, first), _known(ids, second))

    def count_matches(self) -> int:
        """Number of recorded matches."""
        with reading(self.path) as connection:
            return periods.count_matches(connection)

    def unrated_matches(self) -> int:
        """Number of matches that no period has yet."""
        with reading(self.path) as connection:
            return periods.count_matches(connection, periods.last_period(connection)[1])

    def periods(self) -> list[int]:
        """Numbers of the closed rating periods, in their order."""
        with reading(self.path) as connection:
            return [number for (number,) in connection.execute("SELECT number FROM periods ORDER BY number")]

    def rate_matches(self) -> bool:
        """Close a period if there are unrated matches. Returns whether it did; of several processes only one does.

        The league is not locked while the ratings are computed: a match that is added meanwhile belongs to the next
        period.
        """
        while True:
            with reading(self.path) as connection:
                if not periods.count_matches(connection, periods.last_period(connection)[1]):
                    return False
                inputs = periods.read_inputs(connection, periods.next_period(connection, self.settings))
            ratings, number = periods.derive(inputs), inputs.period.number
            with writing(self.path) as connection:
                last, _ = periods.last_period(connection)
                if last == number - 1 and periods.read_ratings(connection, last) == inputs.before:
                    periods.insert_period(connection, inputs.period)
                    periods.write_ratings(connection, number, ratings.values())
                    return True
            # another process has closed a period, or has rebuilt the ratings

    def ratings(self) -> dict[str, Rating]:
        """Ratings after the last period, by member in the order of joining, with members that joined since."""
        with reading(self.path) as connection:
            return self._latest(connection)

    def history(
        self, names: Collection[str] | None = None, after: Collection[int] | None = None
    ) -> dict[int, dict[str, Rating]]:
        """Number of a period -> ratings after it: of all or the named members, after all or the given periods."""
        with reading(self.path) as connection:
            numbers = [period.number for period in periods.read_periods(connection)]
            chosen = [number for number in numbers if after is None or number in after]
            return {number: periods.read_ratings(connection, number, names) for number in chosen}

    def standings(self) -> list[Standing]:
        """All members, the highest rating first."""
        with reading(self.path) as connection:
            results, ratings = records.read_results(connection), self._latest(connection)
            standings = [
                Standing(each, ratings[each.name], results.games(each.name), results.score(each.name))
                for each in read_members(connection)
            ]
        return sorted(standings, key=lambda each: -each.rating.rating)

    def rebuild(self) -> int:
        """Compute all ratings again from members, matches and periods. Returns how many ratings changed.

        Other processes may use the league until the ratings are replaced.
        """
        while True:
            try:
                with reading(self.path) as connection:
                    closed, _ = periods.last_period(connection)
                    events = periods.read_events(connection)
                # in the order of joining; a list of most of the same objects needs little memory
                derived = {number: [*ratings.values()] for number, ratings in periods.derive_all(events)}
            except ValueError as error:
                raise LeagueError(f"{self.path}: {error}; fsck says more") from error
            with writing(self.path) as connection:
                if periods.last_period(connection)[0] == closed:  # no other process has closed a period
                    return periods.replace_ratings(connection, derived)

    def _latest(self, connection: sqlite3.Connection) -> dict[str, Rating]:
        rated = periods.read_ratings(connection, periods.last_period(connection)[0])
        unrated = Rating()
        ratings = {name: rated.get(name, unrated) for name in _by_name(connection)}
        return ratings if self.settings.anchor in rated else ratings | {self.settings.anchor: periods.ANCHOR_RATING}


def _champion(connection: sqlite3.Connection) -> str | None:
    reigns = read_promotions(connection)
    return reigns[-1].member if reigns else None


def _by_name(connection: sqlite3.Connection) -> dict[str, Member]:
    return {member.name: member for member in read_members(connection)}


def _known(members: Mapping[str, T], name: str) -> T:
    if name not in members:
        raise LeagueError(f"no member {name!r}{nearest_name(name, members)}")
    return members[name]
