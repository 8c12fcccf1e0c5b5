"""Files of submissions. Reading one executes nothing, and costs bounded time and memory.

::

    {"format": "echelon-submission", "version": 2,
     "method": {"name": TEXT, "authors": TEXT, "url": TEXT, "decisions": N, "cpu_minutes": X, "hardware": TEXT,
                "note": TEXT},
     "player": {"action_mode": TEXT, "identity": {KEY: TEXT or N}},
     "suite": {"name": TEXT, "hash": SHA256},
     "stamp": {"package": VERSION, "engine_hash": SHA256, "opponents_hash": SHA256, ...},
     "results_hash": SHA256,
     "results": {SCENARIO: {OPPONENT: {"outcome": [1, 0 or -1, ...], "reason": [TEXT, ...], "decisions": [N, ...],
                                       "scores": [[s, s], ...], "survivors": [[N, N], ...]}}},
     "proofs": {SCENARIO: {OPPONENT: [BASE64, or null for a lost battle, ...]}}}

The battles of a scenario are on the suite's maps in order, two on each: first the method is blue, then red. Scores and
survivors are those of the method and of the opponent.
"""

from __future__ import annotations

import base64
import dataclasses
import errno
import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import ConfigError, build
from echelon_env.engine import state
from echelon_env.evaluate.matches import LOSS, Battle, Match
from echelon_env.evaluate.players import baseline
from echelon_env.evaluate.submission.document import (
    BattleKey,
    Method,
    Submission,
    SubmissionError,
    battle_key,
    check_player,
    check_text,
    results_document,
)
from echelon_env.evaluate.suite import SUITES, Suite, load_suite
from echelon_env.evaluate.tables import shorten
from echelon_env.storage.atomic import write_bytes
from echelon_env.storage.reading import parse_json, read_regular_file

FORMAT, VERSION = "echelon-submission", 2

MAX_BYTES = 1 << 27
"""Of a file."""

MAX_VALUES = 1 << 20
"""Most commas and opening brackets in a file: they bound the number of its values, and so the memory."""

MAX_SCORE = 1e6
"""Largest score, in s."""

MAX_MESSAGE = 400
"""Characters of a message about what a file holds."""

_KEYS = (
    "format", "version", "method", "player", "suite", "stamp", "results_hash", "results", "proofs",
)  # fmt: skip
_COLUMNS = ("outcome", "reason", "decisions", "scores", "survivors")
_HASH = re.compile("[0-9a-f]{64}")
_REASONS = ZONE_CONTROL, ELIMINATION, TIME_LIMIT = [
    state.REASONS[reason] for reason in (state.ZONE_CONTROL, state.ELIMINATION, state.TIME_LIMIT)
]


def write_submission(path: str | os.PathLike[str], submission: Submission) -> None:
    """Write a submission into a new file, whole or not at all.

    Raises OSError, FileExistsError if the file exists, and SubmissionError for a submission that would be too large to
    read.
    """
    path = Path(path)
    if path.exists():
        raise FileExistsError(errno.EEXIST, "exists already, choose another name", str(path))
    parts = [f"{json.dumps(key)}: {_dump(value)}" for key, value in _to_document(submission).items()]
    data = ("{" + ",\n ".join(parts) + "}\n").encode()  # a line for each key, to be looked at
    if len(data) > MAX_BYTES:
        raise SubmissionError(
            f"the submission would have {len(data):,} bytes, expected at most {MAX_BYTES:,}; submit its scenarios one "
            "by one"
        )
    write_bytes(path, data)


def read_submission(path: str | os.PathLike[str], *, suite: Suite | None = None) -> Submission:
    """Read a submission and check all of it but the proofs, see `verify_submission`.

    Parameters
    ----------
    path
        The file, which may come from a stranger.
    suite
        The suite that it is expected to be of; by default the installed one of its name.

    Raises
    ------
    SubmissionError
        With the path and the reason, for a file that is too large or not valid, of another suite, or without a proof
        of a battle that it has not lost.
    OSError
        If the file cannot be read.
    """
    name = os.fspath(path)
    try:
        data = read_regular_file(path, MAX_BYTES)
    except ValueError as error:
        raise SubmissionError(f"{name}: {error}") from None
    try:
        return _from_document(_parse(data), suite)
    except ConfigError as error:
        raise SubmissionError(f"{name}: {shorten(str(error), MAX_MESSAGE)}") from None


def _dump(value: Any) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def _to_document(submission: Submission) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "method": dataclasses.asdict(submission.method),
        "player": {"action_mode": submission.action_mode, "identity": dict(submission.identity)},
        "suite": {"name": submission.suite.name, "hash": submission.suite.hash},
        "stamp": dict(submission.stamp),
        "results_hash": submission.results_hash,
        "results": results_document(submission),
        "proofs": _proofs_document(submission),
    }


def _proofs_document(submission: Submission) -> dict[str, dict[str, list[str | None]]]:
    document: dict[str, dict[str, list[str | None]]] = {}
    for match in submission.matches:
        proofs = (submission.proofs.get(battle_key(match, battle)) for battle in match.battles)
        document.setdefault(match.scenario, {})[match.second] = [
            None if proof is None else base64.b64encode(proof).decode() for proof in proofs
        ]
    return document


def _parse(data: bytes) -> Any:
    """The JSON of a file. Raises SubmissionError."""
    try:
        return parse_json(data, max_values=MAX_VALUES)
    except ValueError as error:
        raise SubmissionError(f"expected JSON: {error!s:.200}") from None


def _from_document(document: Any, suite: Suite | None) -> Submission:
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise SubmissionError("expected a submission of echelon-env")
    if type(document.get("version")) is not int or document["version"] != VERSION:
        raise SubmissionError(f"version {document.get('version')!r:.20} of the format, this release reads {VERSION}")
    _check_keys("the document", document, _KEYS)
    _check_keys("player", document["player"], ("action_mode", "identity"))
    method = build(Method, document["method"], "method.")
    suite = _read_suite(document["suite"], suite)
    submission = Submission(
        method,
        *check_player(document["player"]["action_mode"], document["player"]["identity"]),
        suite,
        _read_stamp(document["stamp"]),
        (),
    )
    submission = dataclasses.replace(submission, matches=_read_results(document["results"], submission))
    if document["results_hash"] != submission.results_hash:
        raise SubmissionError(
            f"results_hash: expected {submission.results_hash}, which follows from player and results, got "
            f"{document['results_hash']!r:.80}"
        )
    return dataclasses.replace(submission, proofs=_read_proofs(document["proofs"], submission))


def _read_suite(document: Any, suite: Suite | None) -> Suite:
    """The suite of a submission, as installed."""
    _check_keys("suite", document, ("name", "hash"))
    name = check_text("suite.name", document["name"])
    if suite is None:
        if name not in SUITES:
            own = "a suite of your own needs --suite FILE"
            raise SubmissionError(f"suite.name: expected one of {', '.join(SUITES)}, got {name!r:.80}; {own}")
        suite = load_suite(name)
    if (name, document["hash"]) != (suite.name, suite.hash):
        raise SubmissionError(
            f"suite: expected {suite.name} with the hash {suite.hash[:12]}, got {name!r:.80} with the hash "
            f"{document['hash']!r:.14}"
        )
    return suite


def _read_stamp(document: Any) -> dict[str, str]:
    required = {"package", "engine_hash", "opponents_hash"}
    if not isinstance(document, Mapping) or not required <= document.keys() or len(document) > 20:
        raise SubmissionError(f"stamp: expected an object of at most 20 entries with {', '.join(sorted(required))}")
    for key, value in document.items():
        check_text(f"stamp.{check_text('stamp', key, 60)}", value, 100)
    for key in ("engine_hash", "opponents_hash"):
        if not _HASH.fullmatch(document[key]):
            raise SubmissionError(f"stamp.{key}: expected 64 hexadecimal digits, got {document[key]!r}")
    return dict(document)


def _read_results(document: Any, submission: Submission) -> tuple[Match, ...]:
    """The matches of a submission that has none yet."""
    suite = submission.suite
    names = [scenario.name for scenario in suite.scenarios]
    if not isinstance(document, Mapping) or not document or not set(document) <= set(names):
        raise SubmissionError(f"results: expected an object with one or several of {', '.join(names)}")
    matches = []
    for scenario in (name for name in names if name in document):
        _check_keys(f"results.{scenario}", document[scenario], suite.opponents)
        config, lengths = suite.config(scenario), set()
        for opponent in suite.opponents:
            where = f"results.{scenario}.{opponent}"
            battles = _read_battles(where, document[scenario][opponent], suite, scenario, config)
            lengths.add(len(battles))
            modes = submission.action_mode, baseline(opponent).action_mode
            matches.append(
                Match(
                    scenario,
                    submission.method.name,
                    opponent,
                    modes,
                    battles,
                    ({}, {}),
                    suite.scenario(scenario).config_hash,
                    (submission.identity, {}),
                )
            )
        if len(lengths) > 1:
            raise SubmissionError(f"results.{scenario}: expected as many battles against each opponent, got {lengths}")
    return tuple(matches)


def _read_battles(where: str, document: Any, suite: Suite, scenario: str, config: BattleConfig) -> tuple[Battle, ...]:
    _check_keys(where, document, _COLUMNS)
    frozen = suite.scenario(scenario)
    most = 2 * len(frozen.seeds)
    sizes = [len(roster) for roster in config.rosters]
    for column in _COLUMNS:
        values = document[column]
        if not isinstance(values, list) or not 2 <= len(values) <= most or len(values) % 2:
            raise SubmissionError(f"{where}.{column}: expected a list of an even number of 2 to {most} values")
        if len(values) != len(document["outcome"]):
            raise SubmissionError(f"{where}.{column}: expected {len(document['outcome'])} values, got {len(values)}")
    battles = []
    for number, row in enumerate(zip(*(document[column] for column in _COLUMNS), strict=True)):
        outcome, reason, length, scores, survivors = row
        own = sizes[number % 2], sizes[1 - number % 2]
        checks = {
            "outcome": _is_integer(outcome, -1, 1),
            "reason": isinstance(reason, str) and reason in _REASONS,
            "decisions": _is_integer(length, 1, config.max_steps),
            "scores": _is_pair(scores) and all(_is_score(score) for score in scores),
            "survivors": _is_pair(survivors) and all(map(_is_integer, survivors, (0, 0), own)),
        }
        for column, valid in checks.items():
            if not valid:
                value = row[_COLUMNS.index(column)]
                raise SubmissionError(f"{where}.{column}: battle {number}: unexpected value {value!r:.80}")
        problem = _contradiction(row, config)
        if problem:
            raise SubmissionError(f"{where}: battle {number}: {problem}")
        battles.append(
            Battle(
                number=number,
                seed=frozen.seeds[number // 2],
                map_hash=frozen.map_hashes[number // 2],
                side=number % 2,
                outcome=outcome,
                reason=reason,
                seconds=length * config.decision_seconds,
                scores=(float(scores[0]), float(scores[1])),
                survivors=(survivors[0], survivors[1]),
            )
        )
    return tuple(battles)


def _contradiction(row: tuple[int, str, int, list[float], list[int]], config: BattleConfig) -> str:
    """What in a battle's columns cannot be by the rules of the game (docs/game.md); empty if nothing."""
    outcome, reason, length, (own, other), survivors = row
    to_win, longest = config.zone.score_to_win, length * config.decision_seconds
    if max(own, other) > longest * (1 + 1e-9):
        return f"a score is higher than the {longest:g} s of the battle"
    if (max(own, other) >= to_win) != (reason == ZONE_CONTROL):
        return f"it ended by {reason}, expected {ZONE_CONTROL} if and only if a score is at least {to_win:g} s"
    if reason != ZONE_CONTROL and (0 in survivors) != (reason == ELIMINATION):
        return f"it ended by {reason}, expected {ELIMINATION} if and only if a team has no survivors"
    if reason == TIME_LIMIT and length != config.max_steps:
        return f"it ended by {reason} after {length} decisions, expected {config.max_steps}"
    first, second = survivors if reason == ELIMINATION else (own, other)
    winner = (first > second) - (first < second)
    if outcome != winner and not (reason == TIME_LIMIT and winner == 0):  # then the armour decides
        return f"the outcome is {outcome}, expected {winner}, which follows from the other columns"
    return ""


def _read_proofs(document: Any, submission: Submission) -> dict[BattleKey, bytes]:
    """The proofs of a submission that has none yet. Their actions are unpacked when they are verified."""
    _check_keys("proofs", document, tuple({match.scenario: None for match in submission.matches}))
    proofs: dict[BattleKey, bytes] = {}
    for match in submission.matches:
        _check_keys(f"proofs.{match.scenario}", document[match.scenario], submission.suite.opponents)
        where, values = f"proofs.{match.scenario}.{match.second}", document[match.scenario][match.second]
        if not isinstance(values, list) or len(values) != len(match.battles):
            raise SubmissionError(f"{where}: expected a list of {len(match.battles)} values, one for each battle")
        for battle, value in zip(match.battles, values, strict=True):
            if battle.outcome == LOSS:
                if value is not None:
                    raise SubmissionError(f"{where}: battle {battle.number}: expected null, as it was lost")
                continue
            try:
                proofs[battle_key(match, battle)] = base64.b64decode(value, validate=True)
            except (TypeError, ValueError):
                raise SubmissionError(f"{where}: battle {battle.number}: expected base64") from None
    return proofs


def _check_keys(name: str, value: Any, keys: tuple[str, ...]) -> None:
    if not isinstance(value, Mapping) or value.keys() != set(keys):
        got = f"the keys {sorted(map(str, value))!s:.200}" if isinstance(value, Mapping) else type(value).__name__
        raise SubmissionError(f"{name}: expected an object with the keys {sorted(keys)}, got {got}")


def _is_integer(value: Any, low: int, high: int) -> bool:
    return type(value) is int and low <= value <= high


def _is_score(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= MAX_SCORE and math.copysign(1, value) > 0  # a NaN is not


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2
