"""Matches as a league records them: with all data needed to replay them, and to recognise duplicates.

The content of a match is what was played: players, configuration, maps, sides and results. The worker, the time and the
versions are recorded beside it. A worker that plays a match again, because its first result was lost, gets the same
content.
"""

from __future__ import annotations

import hashlib
import json
import reprlib
import sqlite3
import uuid as uuids
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import ConfigError, check_seed
from echelon_env.evaluate import Battle, Match, stamp
from echelon_env.evaluate.matches import LOSS, TIE, WIN
from echelon_env.evaluate.stamps import battle_document, battle_hash
from echelon_train.league.errors import DamagedLeagueError, LeagueError
from echelon_train.league.ratings.results import Results
from echelon_train.league.store.database import check_text, insert, parse
from echelon_train.league.store.members import Member, now, read_members

_COLUMNS = tuple(each.name for each in fields(Battle) if each.name != "outcome")
_NEWEST = 2**63 - 1  # the largest id that a match can have
_OUTCOMES = {json.dumps(outcome): outcome for outcome in (WIN, TIE, LOSS)}
_PAIRS = ("scores", "survivors")  # of (first, second)


@dataclass(frozen=True)
class PlayedMatch:
    """A match between two members, every map from both sides, and where it was played."""

    uuid: str  # given by the process that ordered the match, the same for every repetition and delivery
    match: Match  # its players have the names of the members
    config: BattleConfig
    learner: str | None = None  # which of the two trains on it, if any
    worker: str = ""  # the process that played it
    stamp: Mapping[str, str] = field(default_factory=stamp)  # see `echelon_env.evaluate.stamp`
    played_at: str = field(default_factory=now)  # UTC


class Row(NamedTuple):
    """A match as a row of the database, with the names of the members instead of their ids."""

    uuid: str
    first: str
    second: str
    learner: str | None
    scenario: str
    config: str  # hash
    outcomes: str  # JSON
    document: str  # JSON
    stamp: str  # JSON
    worker: str
    played_at: str

    @property
    def content_sha256(self) -> str:
        """Hash of what was played: all but the uuid and the last three, as one JSON text with sorted keys.

        `outcomes` and `document` are parts of that text, so nothing is parsed.
        """
        others = (self.config, self.first, self.learner, self.scenario, self.second)
        config, first, learner, scenario, second = map(json.dumps, others)
        text = (
            f'{{"config":{config},"document":{self.document},"first":{first},"learner":{learner},'
            f'"outcomes":{self.outcomes},"scenario":{scenario},"second":{second}}}'
        )
        return hashlib.sha256(text.encode()).hexdigest()


def to_row(played: PlayedMatch, members: Mapping[str, Member]) -> Row:
    """A match as a row of the database. Raises LeagueError, with the reason, if it cannot be a match of the league."""
    match = played.match
    where = f"match {played.uuid}"
    _check_uuid(played.uuid)
    _check_players(where, played, members)
    columns = {name: [getattr(battle, name) for battle in match.battles] for name in _COLUMNS}
    outcomes = [battle.outcome for battle in match.battles]
    _check_battles(where, columns, outcomes)
    if match.config_hash != battle_hash(played.config):
        raise LeagueError(f"{where}: was not played with the configuration that came with it")
    document = {
        "action_modes": list(match.action_modes),
        "battles": columns,
        "classes": [{name: dict(counts) for name, counts in of.items()} for of in match.classes],
    }
    try:
        texts = _json(outcomes), _json(document), json.dumps(dict(played.stamp))
    except (TypeError, ValueError) as error:
        raise LeagueError(f"{where}: holds a value that is no plain data: {error}") from error
    played_by = played.uuid, match.first, match.second, played.learner, match.scenario, match.config_hash
    return Row(*played_by, *texts, played.worker, played.played_at)


def read_rows(connection: sqlite3.Connection, where: str = "1", values: Sequence[str | int] = ()) -> Iterator[Row]:
    """The matches that fulfil a condition, in the order of recording. Raises DamagedLeagueError for foreign texts."""
    rows = connection.execute(
        "SELECT m.uuid, a.name, b.name, l.name, m.scenario, m.config, m.outcomes, m.document, m.stamp, m.worker,"
        " m.played_at FROM matches m"
        " JOIN members a ON a.id = m.first JOIN members b ON b.id = m.second LEFT JOIN members l ON l.id = m.learner"
        f" WHERE {where} ORDER BY m.id",
        values,
    )
    for row in map(Row._make, rows):
        check_text(row.uuid, "uuid of a match")
        for text in (row.scenario, row.worker, row.played_at):
            check_text(text, f"match {row.uuid}")
        yield row


def read_matches(connection: sqlite3.Connection, where: str, values: Sequence[str | int]) -> list[PlayedMatch]:
    """As `read_rows`, the matches themselves. Raises LeagueError for a configuration that this release cannot use."""
    members = {member.name: member for member in read_members(connection)}
    configs = {
        name: _config(name, document) for name, document in connection.execute("SELECT hash, document FROM configs")
    }
    return [to_played(row, members, configs[row.config]) for row in read_rows(connection, where, values)]


def _config(name: str, document: str) -> BattleConfig:
    try:
        return BattleConfig.from_dict(parse(document, dict, f"config {name[:12]}"))
    except ConfigError as error:
        raise LeagueError(f"config {name[:12]}: cannot be used by this release: {error}") from error


def to_played(row: Row, members: Mapping[str, Member], config: BattleConfig) -> PlayedMatch:
    """The inverse of `to_row`. The players' identities are those of the members.

    Raises DamagedLeagueError for a row that no release has written.
    """
    document, outcomes = checked_columns(row)
    columns = document["battles"]
    pairs = {name: [tuple(pair) for pair in columns[name]] for name in _PAIRS}
    battles = [
        Battle(**dict(zip((*_COLUMNS, "outcome"), values, strict=True)))
        for values in zip(*(pairs.get(name, columns[name]) for name in _COLUMNS), outcomes, strict=True)
    ]
    modes, (first, second) = tuple(document["action_modes"]), document["classes"]
    identities = _identity(members[row.first]), _identity(members[row.second])
    players = row.scenario, row.first, row.second, modes
    match = Match(*players, tuple(battles), (first, second), row.config, identities)
    stamps = parse(row.stamp, dict, f"stamp of match {row.uuid}")
    for text in stamps.values():
        check_text(text, f"stamp of match {row.uuid}")
    return PlayedMatch(row.uuid, match, config, row.learner, row.worker, stamps, row.played_at)


def checked_columns(row: Row) -> tuple[dict[str, Any], list[int]]:
    """The document of a row, with the columns of its battles, and their outcomes.

    Raises DamagedLeagueError for a row that no release has written.
    """
    where = f"match {row.uuid}"
    document = parse(row.document, dict, f"document of {where}")
    try:
        outcomes = read_outcomes(row.outcomes)
        columns = document["battles"]
        lengths = {len(values) for values in (*columns.values(), outcomes)}
        if columns.keys() != {*_COLUMNS} or len(lengths) != 1:
            raise ValueError(f"expected the fields {_COLUMNS} of each battle")
        for name in _PAIRS:
            tuple(map(tuple, columns[name]))
        tuple(document["action_modes"])
        _, _ = document["classes"]
        _check_battles(where, columns, outcomes)
    except (AttributeError, KeyError, TypeError, ValueError, LeagueError) as error:
        raise DamagedLeagueError(f"{where}: is no match: {reprlib.repr(str(error))}") from error
    return document, outcomes


def insert_match(connection: sqlite3.Connection, row: Row, played: PlayedMatch, members: Mapping[str, Member]) -> None:
    """Add a match to a database, and its configuration without the rewards if that is new.

    Raises DamagedLeagueError for a text that could not be read again, and LeagueError if the league is full.
    """
    for text in (row.scenario, row.worker, row.played_at):
        check_text(text, f"match {row.uuid}")
    if connection.execute("SELECT 1 FROM configs WHERE hash = ?", (row.config,)).fetchone() is None:
        insert(connection, "configs", hash=row.config, document=_json(battle_document(played.config)))
    players = {name: None if name is None else members[name].id for name in (row.first, row.second, row.learner)}
    ids = {"first": players[row.first], "second": players[row.second], "learner": players[row.learner]}
    insert(connection, "matches", **{**row._asdict(), **ids, "content_sha256": row.content_sha256})


def read_outcomes(outcomes: str) -> list[int]:
    """The outcomes of a match's battles, two for each map. Raises DamagedLeagueError for a text that is no match's.

    It reads a column of all matches, so it is faster than a parser of any JSON.
    """
    try:
        values = [*map(_OUTCOMES.__getitem__, outcomes[1:-1].split(","))]
        if len(values) % 2 == 0 and outcomes[0] + outcomes[-1] == "[]":
            return values
    except (KeyError, TypeError):
        pass
    raise DamagedLeagueError(f"outcomes of a match: expected two of -1, 0 or 1 a map, got {reprlib.repr(outcomes)}")


def read_pair_scores(connection: sqlite3.Connection) -> dict[tuple[str, str], list[float]]:
    """(first, second) -> the first's scores in all of their games; the first is the member that joined earlier.

    Raises DamagedLeagueError for a match of a missing member.
    """
    pairs, starts, scores = _read_games(connection, _names(connection))
    games = np.split(scores, starts[1:]) if pairs else []
    return {pair: each.tolist() for pair, each in zip(pairs, games, strict=True)}


def read_results(
    connection: sqlite3.Connection, after: int = 0, last: int = _NEWEST, names: Collection[str] | None = None
) -> Results:
    """The results of the matches of the ids (after, last]: all, or those among the named members.

    Raises DamagedLeagueError for a match of a missing member.
    """
    members, among = _names(connection), "1"
    if names is not None:
        ids = ", ".join(str(number) for number, name in members.items() if name in names)
        among = f"first IN ({ids}) AND second IN ({ids})"
    pairs, starts, scores = _read_games(connection, members, f"id > ? AND id <= ? AND {among}", (after, last))
    numbers, points = np.diff(starts, append=len(scores)), np.add.reduceat(scores, starts)
    results = Results()
    for pair, *sums in zip(pairs, numbers.tolist(), points.tolist(), strict=True):
        results.add(*pair, *sums)
    return results


def _names(connection: sqlite3.Connection) -> dict[int, str]:
    return dict(connection.execute("SELECT id, name FROM members"))


def _read_games(
    connection: sqlite3.Connection, names: Mapping[int, str], where: str = "1", values: Sequence[int] = ()
) -> tuple[list[tuple[str, str]], NDArray[np.intp], NDArray[np.float64]]:
    """The games of the matches that fulfil a condition, by the names of the members' ids. A game is one map.

    Returns the pairs, the member that joined earlier first; the place (pairs,) of the first game of each; and the
    first's scores (games,), each the mean of two battles: 0, 1/4, 1/2, 3/4 or 1.

    Raises DamagedLeagueError for a text that holds no outcomes, and a match of a missing member.
    """
    rows = connection.execute(f"SELECT first, second, outcomes FROM matches WHERE {where} ORDER BY id", values)
    players, outcomes, numbers = [], [], []
    for first, second, text in rows:
        found = read_outcomes(text)
        players.append((first, second))
        outcomes += found
        numbers.append(len(found) // 2)
    first, second = np.repeat(np.array(players, np.int64).reshape(-1, 2), numbers, axis=0).T
    scores = (2.0 + np.array(outcomes, np.int64).reshape(-1, 2).sum(axis=1)) / 4
    scores[first > second] = 1 - scores[first > second]
    ids = np.column_stack([np.minimum(first, second), np.maximum(first, second)])
    order = np.lexsort(ids.T[::-1])  # stable: a pair's games stay in their order
    starts = np.flatnonzero(np.diff(ids[order], axis=0, prepend=0).any(axis=1))
    try:
        pairs = [(names[low], names[high]) for low, high in ids[order][starts].tolist()]
    except KeyError as error:
        raise DamagedLeagueError(f"matches: expected the ids of members, got {error}") from None
    return pairs, starts, scores[order]


def read_maps(connection: sqlite3.Connection, first: int, second: int) -> set[int]:
    """The seeds of all maps that two members, given by their ids, have played against each other."""
    rows = connection.execute(
        "SELECT document FROM matches WHERE first IN (?1, ?2) AND second IN (?1, ?2)", (first, second)
    )
    seeds: set[int] = set()
    for (document,) in rows:
        try:
            seeds.update(map(check_seed, parse(document, dict, "document of a match")["battles"]["seed"]))
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedLeagueError(f"document of a match: {reprlib.repr(str(error))}") from error
    return seeds


def _check_uuid(uuid: str) -> None:
    try:
        if str(uuids.UUID(uuid)) == uuid:
            return
    except (ValueError, AttributeError, TypeError):
        pass
    raise LeagueError(f"uuid: expected one like {str(uuids.UUID(int=0))!r}, got {uuid!r}")


def _check_players(where: str, played: PlayedMatch, members: Mapping[str, Member]) -> None:
    match = played.match
    for name, identity in zip((match.first, match.second), match.identities, strict=True):
        if name not in members:
            raise LeagueError(f"{where}: {name!r} is no member of the league")
        weights = identity.get("weights_sha256")
        if weights is not None and weights != members[name].weights_sha256:
            raise LeagueError(f"{where}: {name!r} played with other weights than those of the member of that name")
    if match.first == match.second:
        raise LeagueError(f"{where}: expected two members, got {match.first!r} against itself")
    if played.learner not in (None, match.first, match.second):
        raise LeagueError(f"{where}: learner: expected one of the two players or none, got {played.learner!r}")


def _check_battles(where: str, columns: Mapping[str, Sequence[Any]], outcomes: Sequence[Any]) -> None:
    """Raise LeagueError unless every map is played from both sides in succession, and all maps differ."""
    seeds, hashes = columns["seed"], columns["map_hash"]
    try:
        well_formed = [*columns["number"]] == [*range(len(seeds))] and [*columns["side"]] == [0, 1] * (len(seeds) // 2)
        maps = {*map(check_seed, seeds[::2])}
        complete = seeds[::2] == seeds[1::2] and hashes[::2] == hashes[1::2] and len(maps) == len(seeds[::2]) > 0
        complete = complete and {*map(type, seeds[1::2])} == {int}
        decided = all(outcome in (WIN, TIE, LOSS) for outcome in outcomes)
    except ValueError as error:
        raise LeagueError(f"{where}: {error}") from error
    if not (well_formed and complete and decided):
        raise LeagueError(
            f"{where}: expected two battles of each of at least one map, side 0 and then side 1, "
            f"no map twice, and outcomes of {WIN}, {TIE} or {LOSS}"
        )


def _identity(member: Member) -> dict[str, str | int]:
    if member.weights_sha256 is None:
        return {}
    return {"steps": member.age, "weights_sha256": member.weights_sha256}


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
