"""Leaderboards: tables of methods from the submissions of many.

Submissions are compared on one board if suite, rules and opponents are the same. Several submissions with the same
method, authors and action mode are training runs of the method. A board has a section for each set of scenarios that
some submission has completed: its rows are the methods that have completed these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.evaluate.estimates import CONFIDENCE, interquartile_mean, map_scores
from echelon_env.evaluate.leaderboard_tables import format_leaderboard, leaderboard_markdown
from echelon_env.evaluate.matches import LOSS, Match
from echelon_env.evaluate.report import mean_scores
from echelon_env.evaluate.stamps import stamp
from echelon_env.evaluate.submission import Draw, Submission, SubmissionError, drawn_battles
from echelon_env.evaluate.submission.document import BattleKey, battle_key, proved_battles
from echelon_env.evaluate.suite import Suite

__all__ = ["format_leaderboard", "leaderboard_markdown", "make_leaderboard"]

FORMAT, VERSION = "echelon-leaderboard", 2

INVALID, FAILED, COPY, INCOMPLETE = "invalid", "failed", "copy", "incomplete"
"""Why a file is not ranked."""

MAX_COMMON = 0.5
"""Largest share of the battles that neither of two submissions has lost, in which all details may be equal."""

MIN_COMMON = 10
"""Minimum number of such equal battles: fewer may be chance."""

_BEHAVIOUR = ("engine_hash", "opponents_hash")

Submissions = Mapping[str, Submission]
"""Submissions by the name of their file."""

_Details = Mapping[BattleKey, tuple[Any, ...]]


def make_leaderboard(
    submissions: Submissions,
    *,
    scenarios: Sequence[str] | None = None,
    failures: Mapping[str, Sequence[str]] | None = None,
    draw: Draw | None = None,
    invalid: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Make a document of plain values from submissions, for JSON and for `format_leaderboard`.

    docs/reference/submissions.md lists its keys. Methods are ranked by their interquartile means, then by their means.
    Of two submissions that are of the same policy, as far as that shows, the first is ranked.

    By default every set of scenarios that a submission has completed has a section; else the `scenarios` count.
    `failures` and `draw` are the sentences, by file, and the draw of `verify_submission`: a submission with a sentence
    is not ranked. None means that they were not verified. `invalid` is file -> the reason why it could not be read;
    these files are listed, too. Raises SubmissionError for a scenario that is in none of the suites.
    """
    if submissions:
        check_scenarios(scenarios or (), [each.suite for each in submissions.values()])
    boards: dict[tuple[str, ...], dict[str, Submission]] = {}
    for file, submission in submissions.items():
        behaviour = (submission.stamp[key] for key in _BEHAVIOUR)
        boards.setdefault((submission.suite.name, submission.suite.hash, *behaviour), {})[file] = submission
    documents = [_board(of_board, scenarios, failures, draw) for of_board in boards.values()]
    return {
        "format": FORMAT,
        "version": VERSION,
        "stamp": stamp(),
        "confidence": CONFIDENCE,
        "draw": None if draw is None else asdict(draw),
        "boards": sorted(documents, key=lambda board: not board["installed"]),
        "not_ranked": [
            {"file": file, "why": INVALID, "reason": reason} for file, reason in (invalid or {}).items()
        ],
    }  # fmt: skip


def check_scenarios(scenarios: Sequence[str], suites: Iterable[Suite]) -> None:
    """Raise SubmissionError for a scenario that is in none of the suites."""
    known = {each.name for suite in suites for each in suite.scenarios}
    for name in scenarios:
        if name not in known:
            raise SubmissionError(f"scenarios: expected some of {', '.join(sorted(known))}, got {name!r}")


def _board(
    submissions: Submissions,
    scenarios: Sequence[str] | None,
    failures: Mapping[str, Sequence[str]] | None,
    draw: Draw | None,
) -> dict[str, Any]:
    """The board of submissions with the same suite, rules and opponents."""
    first = next(iter(submissions.values()))
    suite, behaviour = first.suite, {key: first.stamp[key] for key in _BEHAVIOUR}
    described = {
        file: _describe(file, each, None if failures is None else not failures[file], draw)
        for file, each in submissions.items()
    }
    left = {file: each for file, each in submissions.items() if described[file]["verified"] is not False}
    copies = _copies(left)
    left = {file: each for file, each in left.items() if file not in copies}
    if scenarios is None:
        sets = {each.complete: None for each in left.values() if each.complete}
    else:
        sets = {tuple(each.name for each in suite.scenarios if each.name in scenarios): None}
    all_verified = None if failures is None else True
    sections = [_section(left, counted, all_verified) for counted in sorted(sets, key=len, reverse=True) if counted]
    ranked = {file for section in sections for row in section["rows"] for file in row["files"]}
    installed = stamp()
    return {
        "suite": {"name": suite.name, "hash": suite.hash},
        "opponents": list(suite.opponents),
        "stamp": {"package": first.stamp["package"], **behaviour},
        "installed": all(installed[key] == value for key, value in behaviour.items()),
        "sections": [section for section in sections if section["rows"]],
        "submissions": [each for file, each in described.items() if file in ranked],
        "not_ranked": [
            {
                **each,
                **_reason(submissions[file], (failures or {}).get(file, ()), copies.get(file)),
                "failures": list((failures or {}).get(file, ())),
            }
            for file, each in described.items()
            if file not in ranked
        ],
    }


def _reason(submission: Submission, failures: Sequence[str], copied: str | None) -> dict[str, str]:
    """Why a submission is not ranked."""
    if failures:
        more = f" and {len(failures) - 1} more" if len(failures) > 1 else ""
        return {"why": FAILED, "reason": f"FAILED to verify: {failures[0]}{more}"}
    if copied is not None:
        return {"why": COPY, "reason": copied}
    complete = ", ".join(submission.complete)
    return {
        "why": INCOMPLETE,
        "reason": f"has completed {complete} only"
        if complete
        else "has completed no scenario: a scenario is ranked only with all of its battles",
    }


def _describe(file: str, submission: Submission, verified: bool | None, draw: Draw | None) -> dict[str, Any]:
    """What is said about a submission. `verified` is None if its proofs were not replayed."""
    return {
        "file": file,
        "method": asdict(submission.method),
        "action_mode": submission.action_mode,
        "identity": dict(submission.identity),
        "complete": list(submission.complete),
        "proofs": len(proved_battles(submission)),
        "replayed": 0 if verified is None else len(drawn_battles(submission, draw)),
        "verified": verified,
        "results_hash": submission.results_hash,
    }


def _copies(submissions: Submissions) -> dict[str, str]:
    """The submissions that are of the policy of an earlier one, as far as that shows, with a sentence about it."""
    kept: dict[str, _Details] = {}
    copies: dict[str, str] = {}
    for file, submission in submissions.items():
        details = _details(submission)
        found = (_common(submission, submissions[other], details, kept[other]) for other in kept)
        copy = next((f"{what} {other}" for other, what in zip(kept, found, strict=True) if what), None)
        if copy is None:
            kept[file] = details
        else:
            copies[file] = copy
    return copies


def _common(one: Submission, two: Submission, details: _Details, others: _Details) -> str:
    """What shows that two submissions are of the same policy, before the name of the other; empty if nothing does."""
    if [match.battles for match in one.matches] == [match.battles for match in two.matches]:
        return "has the same results as"
    common = [details[key] == others[key] for key in details.keys() & others.keys()]
    if sum(common) > max(MIN_COMMON - 1, MAX_COMMON * len(common)):
        return (
            f"is equal in {sum(common)} of the {len(common)} battles that neither has lost, at most {MAX_COMMON:.0%} "
            "may be, to"
        )
    weights = one.identity.get("weights_sha256")
    if _method(one) == _method(two) and weights is not None and weights == two.identity.get("weights_sha256"):
        return f"is no further training run of {one.method.name!r}, as it has the same weights as"
    return ""


def _details(submission: Submission) -> _Details:
    """The details of the battles that were not lost, which are those that are proved."""
    return {
        battle_key(match, battle): (battle.outcome, battle.reason, battle.seconds, battle.scores, battle.survivors)
        for match in submission.matches
        for battle in match.battles
        if battle.outcome != LOSS
    }


def _method(submission: Submission) -> tuple[str, ...]:
    """What is the same in the training runs of a method."""
    return submission.method.name, submission.method.authors, submission.action_mode


def _section(submissions: Submissions, scenarios: tuple[str, ...], verified: bool | None) -> dict[str, Any]:
    """The methods that have completed the scenarios, ranked."""
    methods: dict[tuple[str, ...], dict[str, Submission]] = {}
    for file, submission in submissions.items():
        if set(scenarios) <= set(submission.complete):
            methods.setdefault(_method(submission), {})[file] = submission
    rows = [_row(runs, scenarios) for runs in methods.values()]
    values = {id(row): tuple(round(-row[key]["estimate"], 9) for key in ("iqm", "mean")) for row in rows}
    rows.sort(key=lambda row: (values[id(row)], row["method"]))
    better = [sum(other < values[id(row)] for other in values.values()) for row in rows]
    return {
        "scenarios": list(scenarios),
        "rows": [{"rank": 1 + number, "verified": verified, **row} for number, row in zip(better, rows, strict=True)],
    }


def _row(runs: Submissions, scenarios: Sequence[str]) -> dict[str, Any]:
    """A method's results over its runs."""
    first = next(iter(runs.values()))
    scores = [{name: _map_scores(run, name) for name in scenarios} for run in runs.values()]
    every = [match for run in runs.values() for match in run.matches if match.scenario in scenarios]
    return {
        "method": first.method.name,
        "action_mode": first.action_mode,
        "authors": first.method.authors,
        "url": first.method.url,
        "files": list(runs),
        **mean_scores(scores, {name: first.suite.scenario(name).seeds for name in scenarios}),
        "iqm_of_runs": [float(interquartile_mean(np.concatenate([*run.values()]))) for run in scores],
        "wins_against": {
            opponent: _win_rate([match for match in every if match.second == opponent])
            for opponent in first.suite.opponents
        },
        "wins_in": {
            scenario: _win_rate([match for match in every if match.scenario == scenario]) for scenario in scenarios
        },
    }


def _map_scores(run: Submission, scenario: str) -> NDArray[np.float64]:
    """The scores (maps,) of a run in a scenario, means over the opponents."""
    against = [map_scores(match) for match in run.matches if match.scenario == scenario]
    return np.asarray(np.mean(against, axis=0))


def _win_rate(matches: Sequence[Match]) -> float:
    """The share of battles won by the first players of matches."""
    return sum(match.wins for match in matches) / sum(len(match.battles) for match in matches)
