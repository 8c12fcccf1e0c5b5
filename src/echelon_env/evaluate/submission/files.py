"""Files of submissions. Reading one executes nothing, and costs bounded time and memory.

::

    {"format": "echelon-submission", "version": 3,
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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import ConfigError, build, check_fields, measure
from echelon_env.evaluate.matches import LOSS, Battle, Match
from echelon_env.evaluate.players import baseline
from echelon_env.evaluate.submission.document import (
    MAX_KEY,
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
from echelon_env.storage.reading import parse_json, read_regular_file, version_problem

FORMAT, VERSION = "echelon-submission", 3

MAX_BYTES = 1 << 27
"""Of a file."""

MAX_VALUES = 1 << 20
"""Most commas and opening brackets in a file: they bound the number of its values, and so the memory."""

MAX_SCORE = 1e6
"""Largest score, in s."""

MAX_MESSAGE = 400
"""Characters of a message about what a file holds."""

_HASH = re.compile("[0-9a-f]{64}")
_ZONE_CONTROL, _ELIMINATION, _TIME_LIMIT = "zone_control", "elimination", "time_limit"


@dataclass(frozen=True)
class _Player:
    action_mode: str
    identity: dict[str, str | int]


@dataclass(frozen=True)
class _Suite:
    name: str
    hash: str


@dataclass(frozen=True)
class _Results:
    """The columns of the battles against an opponent."""

    reason: tuple[Literal["zone_control", "elimination", "time_limit"], ...]
    outcome: tuple[int, ...] = measure("", -1, 1)
    decisions: tuple[int, ...] = measure("decisions", 1)
    scores: tuple[tuple[float, ...], ...] = measure("s", 0, MAX_SCORE)
    survivors: tuple[tuple[int, ...], ...] = measure("mechs", 0)


@dataclass(frozen=True)
class _Document:
    format: str
    version: int
    method: Method
    player: _Player
    suite: _Suite
    stamp: dict[str, str]
    results_hash: str
    results: dict[str, dict[str, _Results]]
    proofs: dict[str, dict[str, tuple[str | None, ...]]]


def write_submission(path: str | os.PathLike[str], submission: Submission) -> None:
    """Write a submission into a new file, whole or not at all.

    Raises OSError, FileExistsError if the file exists, and SubmissionError for a submission that would be too large to
    read.
    """
    path = Path(path)
    if path.exists():
        raise FileExistsError(errno.EEXIST, "exists already, choose another name", str(path))
    parts = {
        key: json.dumps(value, allow_nan=False, separators=(",", ":"))
        for key, value in _to_document(submission).items()
    }
    lines = [f"{json.dumps(key)}: {text}" for key, text in parts.items()]
    data = ("{" + ",\n ".join(lines) + "}\n").encode()  # a line for each key, to be looked at
    if len(data) > MAX_BYTES:
        raise SubmissionError(
            f"the submission would have {len(data):,} bytes, expected at most {MAX_BYTES:,}; submit its scenarios one "
            "by one"
        )
    write_bytes(path, data)


def read_submission(path: str | os.PathLike[str], *, suite: Suite | None = None) -> Submission:
    """Read a submission, which may come from a stranger, and check all of it but the proofs, see `verify_submission`.

    It is expected to be of the `suite`, by default the installed one of its name. Raises SubmissionError, with the path
    and the reason, for a file that is too large or not valid, of another suite, or without a proof of a battle that it
    has not lost; OSError if the file cannot be read.
    """
    name = os.fspath(path)
    try:
        data = read_regular_file(path, MAX_BYTES)
        document = parse_json(data, max_values=MAX_VALUES, object_hook=_with_short_keys)
    except ValueError as error:
        raise SubmissionError(f"{name}: expected JSON: {error!s:.200}") from None
    try:
        return _from_document(document, suite)
    except ConfigError as error:
        raise SubmissionError(f"{name}: {shorten(str(error), MAX_MESSAGE)}") from None


def _with_short_keys(plain: dict[str, Any]) -> dict[str, Any]:
    """An object of the file; what checks its values repeats the keys."""
    if any(len(key) > MAX_KEY for key in plain):
        raise ValueError(f"expected keys of at most {MAX_KEY} characters")
    return plain


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


def _from_document(plain: Any, suite: Suite | None) -> Submission:
    if not isinstance(plain, Mapping) or plain.get("format") != FORMAT:
        raise SubmissionError("expected a submission of echelon-env")
    if problem := version_problem(plain.get("version"), VERSION):
        raise SubmissionError(problem)
    document: _Document = build(_Document, plain, "")
    check_fields(document, "")
    submission = Submission(
        document.method,
        *check_player(document.player.action_mode, document.player.identity),
        _read_suite(document.suite, suite),
        _read_stamp(document.stamp),
        (),
    )
    submission = dataclasses.replace(submission, matches=_read_results(document.results, submission))
    if document.results_hash != submission.results_hash:
        raise SubmissionError(
            f"results_hash: expected {submission.results_hash}, which follows from player and results, got "
            f"{document.results_hash!r:.80}"
        )
    return dataclasses.replace(submission, proofs=_read_proofs(document.proofs, submission))


def _read_suite(stated: _Suite, suite: Suite | None) -> Suite:
    """The suite of a submission, as installed."""
    name = check_text("suite.name", stated.name)
    if suite is None:
        if name not in SUITES:
            own = "a suite of your own needs --suite FILE"
            raise SubmissionError(f"suite.name: expected one of {', '.join(SUITES)}, got {name!r:.80}; {own}")
        suite = load_suite(name)
    if (name, stated.hash) != (suite.name, suite.hash):
        raise SubmissionError(
            f"suite: expected {suite.name} with the hash {suite.hash[:12]}, got {name!r:.80} with the hash "
            f"{stated.hash!r:.14}"
        )
    return suite


def _read_stamp(stamp: dict[str, str]) -> dict[str, str]:
    required = {"package", "engine_hash", "opponents_hash"}
    if not required <= stamp.keys() or len(stamp) > 20:
        raise SubmissionError(f"stamp: expected an object of at most 20 entries with {', '.join(sorted(required))}")
    for key, value in stamp.items():
        check_text(f"stamp.{check_text('stamp', key)}", value, 100)
    for key in ("engine_hash", "opponents_hash"):
        if not _HASH.fullmatch(stamp[key]):
            raise SubmissionError(f"stamp.{key}: expected 64 hexadecimal digits, got {stamp[key]!r}")
    return stamp


def _read_results(results: Mapping[str, Mapping[str, _Results]], submission: Submission) -> tuple[Match, ...]:
    """The matches of a submission that has none yet."""
    suite = submission.suite
    names = [scenario.name for scenario in suite.scenarios]
    if not results or not set(results) <= set(names):
        raise SubmissionError(f"results: expected an object with one or several of {', '.join(names)}")
    matches = []
    for scenario in (name for name in names if name in results):
        _check_names(f"results.{scenario}", results[scenario], suite.opponents)
        config, lengths = suite.config(scenario), set()
        for opponent in suite.opponents:
            where = f"results.{scenario}.{opponent}"
            battles = _read_battles(where, results[scenario][opponent], suite, scenario, config)
            lengths.add(len(battles))
            matches.append(
                Match(
                    scenario,
                    submission.method.name,
                    opponent,
                    (submission.action_mode, baseline(opponent).action_mode),
                    battles,
                    ({}, {}),
                    suite.scenario(scenario).config_hash,
                    (submission.identity, {}),
                )
            )
        if len(lengths) > 1:
            raise SubmissionError(f"results.{scenario}: expected as many battles against each opponent, got {lengths}")
    return tuple(matches)


def _read_battles(
    where: str, results: _Results, suite: Suite, scenario: str, config: BattleConfig
) -> tuple[Battle, ...]:
    frozen = suite.scenario(scenario)
    most = 2 * len(frozen.seeds)
    columns = {each.name: getattr(results, each.name) for each in dataclasses.fields(results)}
    sizes = {name: len(values) for name, values in columns.items()}
    length = sizes["outcome"]
    if not 2 <= length <= most or length % 2 or set(sizes.values()) != {length}:
        raise SubmissionError(f"{where}: expected lists of an even number of 2 to {most} values, got {sizes}")
    battles = []
    for number, (reason, outcome, decisions, scores, survivors) in enumerate(zip(*columns.values(), strict=True)):
        battle = Battle(
            number=number,
            seed=frozen.seeds[number // 2],
            map_hash=frozen.map_hashes[number // 2],
            side=number % 2,
            outcome=outcome,
            reason=reason,
            seconds=decisions * config.decision_seconds,
            scores=scores,
            survivors=survivors,
        )
        problem = _contradiction(battle, decisions, config)
        if problem:
            raise SubmissionError(f"{where}: battle {number}: {problem}")
        battles.append(battle)
    return tuple(battles)


def _contradiction(battle: Battle, decisions: int, config: BattleConfig) -> str:
    """What in a battle cannot be by the rules of the game (docs/reference/rules.md); empty if nothing."""
    reason, outcome, scores, survivors = battle.reason, battle.outcome, battle.scores, battle.survivors
    if len(scores) != 2 or len(survivors) != 2 or any(math.copysign(1, score) < 0 for score in scores):
        return f"expected two scores and two numbers of survivors, got {scores!r:.80} and {survivors!r:.80}"
    mechs = [len(config.rosters[team]) for team in (battle.side, 1 - battle.side)]
    if any(number > most for number, most in zip(survivors, mechs, strict=True)):
        return f"expected at most {mechs} survivors, got {survivors!r:.80}"
    if decisions > config.max_steps:
        return f"expected at most {config.max_steps} decisions, got {decisions!r:.20}"
    (own, other), to_win, longest = scores, config.zone.score_to_win, decisions * config.decision_seconds
    if max(own, other) > longest * (1 + 1e-9):
        return f"a score is higher than the {longest:g} s of the battle"
    if (max(own, other) >= to_win) != (reason == _ZONE_CONTROL):
        return f"it ended by {reason}, expected {_ZONE_CONTROL} if and only if a score is at least {to_win:g} s"
    if reason != _ZONE_CONTROL and (0 in survivors) != (reason == _ELIMINATION):
        return f"it ended by {reason}, expected {_ELIMINATION} if and only if a team has no survivors"
    if reason == _TIME_LIMIT and decisions != config.max_steps:
        return f"it ended by {reason} after {decisions} decisions, expected {config.max_steps}"
    first, second = survivors if reason == _ELIMINATION else (own, other)
    winner = (first > second) - (first < second)
    if outcome != winner and not (reason == _TIME_LIMIT and winner == 0):  # then the armour decides
        return f"the outcome is {outcome}, expected {winner}, which follows from the other columns"
    return ""


def _read_proofs(
    texts: Mapping[str, Mapping[str, tuple[str | None, ...]]], submission: Submission
) -> dict[BattleKey, bytes]:
    """The proofs of a submission that has none yet. Their actions are unpacked when they are verified."""
    _check_names("proofs", texts, {match.scenario for match in submission.matches})
    proofs: dict[BattleKey, bytes] = {}
    for match in submission.matches:
        _check_names(f"proofs.{match.scenario}", texts[match.scenario], submission.suite.opponents)
        where, values = f"proofs.{match.scenario}.{match.second}", texts[match.scenario][match.second]
        if len(values) != len(match.battles):
            raise SubmissionError(f"{where}: expected {len(match.battles)} values, one for each battle")
        for battle, value in zip(match.battles, values, strict=True):
            if (value is None) != (battle.outcome == LOSS):
                raise SubmissionError(f"{where}: battle {battle.number}: expected null if and only if it was lost")
            if value is not None:
                try:
                    proofs[battle_key(match, battle)] = base64.b64decode(value, validate=True)
                except ValueError:
                    raise SubmissionError(f"{where}: battle {battle.number}: expected base64") from None
    return proofs


def _check_names(where: str, found: Iterable[str], expected: Iterable[str]) -> None:
    if set(found) != set(expected):
        raise SubmissionError(f"{where}: expected the keys {sorted(expected)}, got {sorted(found)!s:.200}")
