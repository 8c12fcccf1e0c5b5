"""Leaderboards: a table of methods from the submissions of many.

Submissions are compared on one board if suite, rules and opponents are the same. Several submissions with the same
method, authors and action mode are training runs of the method.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from echelon_env.evaluate.leaderboard_tables import format_leaderboard, leaderboard_markdown
from echelon_env.evaluate.matches import Match
from echelon_env.evaluate.report import aggregate
from echelon_env.evaluate.stamps import stamp
from echelon_env.evaluate.statistics import CONFIDENCE, score_interval
from echelon_env.evaluate.submission import Submission, SubmissionError

__all__ = ["format_leaderboard", "leaderboard_markdown", "make_leaderboard"]

FORMAT, VERSION = "echelon-leaderboard", 1

MIN_RUNS = 3
"""Minimum number of runs for an interval over runs. With fewer the intervals are over maps."""

_BEHAVIOUR = ("engine_hash", "opponents_hash")


def make_leaderboard(
    submissions: Mapping[str, Submission], *, scenarios: Sequence[str] | None = None
) -> dict[str, Any]:
    """Make a document of plain values from submissions, for JSON and for `format_leaderboard`.

    Parameters
    ----------
    submissions
        The submissions by the name of their file.
    scenarios
        The scenarios that count, names of the suites'. By default those of the suite; on a board on which no submission
        has all of them those that all submissions have.

    Returns
    -------
    The document; docs/evaluation.md lists its keys. Methods are ranked by their interquartile means.

    Raises
    ------
    SubmissionError
        For two submissions with the same results, for two runs of a method with the same weights, and for a scenario
        that is in none of the suites.
    """
    _check_different(submissions)
    known = {each.name for submission in submissions.values() for each in submission.suite.scenarios}
    for name in scenarios or ():
        if name not in known:
            raise SubmissionError(f"scenarios: expected some of {', '.join(sorted(known))}, got {name!r}")
    boards: dict[tuple[str, ...], dict[str, Submission]] = {}
    for file, submission in submissions.items():
        behaviour = (submission.stamp[key] for key in _BEHAVIOUR)
        boards.setdefault((submission.suite.name, submission.suite.hash, *behaviour), {})[file] = submission
    documents = [_board(of_board, scenarios) for of_board in boards.values()]
    return {
        "format": FORMAT,
        "version": VERSION,
        "stamp": stamp(),
        "confidence": CONFIDENCE,
        "boards": sorted(documents, key=lambda board: not board["installed"]),
    }


def _check_different(submissions: Mapping[str, Submission]) -> None:
    for (file, one), (other, two) in itertools.combinations(submissions.items(), 2):
        if one.results_hash == two.results_hash:
            raise SubmissionError(f"{file} and {other}: expected different submissions, got the same results twice")
        weights = one.identity.get("weights_sha256")
        if _method(one) == _method(two) and weights is not None and weights == two.identity.get("weights_sha256"):
            raise SubmissionError(
                f"{file} and {other}: expected different training runs of {one.method.name!r}, got the same weights"
            )


def _method(submission: Submission) -> tuple[str, ...]:
    """What is the same in the training runs of a method."""
    return submission.method.name, submission.method.authors, submission.action_mode


def _board(submissions: Mapping[str, Submission], scenarios: Sequence[str] | None) -> dict[str, Any]:
    """The board of submissions with the same suite, rules and opponents."""
    first = next(iter(submissions.values()))
    suite, behaviour = first.suite, {key: first.stamp[key] for key in _BEHAVIOUR}
    names = [each.name for each in suite.scenarios]
    counted = [name for name in names if scenarios is None or name in scenarios]
    if scenarios is None and all(each.partial for each in submissions.values()):
        counted = [name for name in names if all(name in each.complete for each in submissions.values())]
    ranked = {file: each for file, each in submissions.items() if counted and set(counted) <= set(each.complete)}
    methods: dict[tuple[str, ...], dict[str, Submission]] = {}
    for file, submission in ranked.items():
        methods.setdefault(_method(submission), {})[file] = submission
    rows = [_row(runs, counted) for runs in methods.values()]
    rows.sort(key=lambda row: (-row["iqm"]["estimate"], -row["mean"]["estimate"], row["method"]))
    installed = stamp()
    return {
        "suite": {"name": suite.name, "hash": suite.hash},
        "scenarios": counted,
        "opponents": list(suite.opponents),
        "stamp": {"package": first.stamp["package"], **behaviour},
        "installed": all(installed[key] == value for key, value in behaviour.items()),
        "rows": [{"rank": rank, **row} for rank, row in enumerate(rows, start=1)],
        "not_ranked": [
            {"file": file, "method": each.method.name, "complete": list(each.complete)}
            for file, each in submissions.items()
            if file not in ranked
        ],
    }


def _row(runs: Mapping[str, Submission], scenarios: Sequence[str]) -> dict[str, Any]:
    """A method's results over its runs."""
    first = next(iter(runs.values()))
    name = first.method.name
    played = [[match for match in run.matches if match.scenario in scenarios] for run in runs.values()]
    every = [*itertools.chain(*played)]
    figures = {key: dict(aggregate(every, name)[key]) for key in ("mean", "iqm")}
    over = "maps"
    if len(runs) >= MIN_RUNS:
        over = "runs"
        of_runs = [aggregate(matches, name) for matches in played]
        for key in figures:
            interval = score_interval({"runs": np.array([each[key]["estimate"] for each in of_runs])})
            figures[key] = {"estimate": interval.estimate, "low": interval.low, "high": interval.high}
    return {
        "method": name,
        "action_mode": first.action_mode,
        "authors": first.method.authors,
        "url": first.method.url,
        "runs": len(runs),
        "interval_over": over,
        **figures,
        "wins_against": {
            opponent: _win_rate([match for match in every if match.second == opponent])
            for opponent in first.suite.opponents
        },
        "wins_in": {
            scenario: _win_rate([match for match in every if match.scenario == scenario]) for scenario in scenarios
        },
        "submissions": [
            {
                "file": file,
                "decisions": run.method.decisions,
                "cpu_minutes": run.method.cpu_minutes,
                "hardware": run.method.hardware,
                "note": run.method.note,
                "identity": dict(run.identity),
                "challenge": run.challenge,
                "proofs": len(run.proofs),
                "results_hash": run.results_hash,
            }
            for file, run in runs.items()
        ],
    }


def _win_rate(matches: Sequence[Match]) -> float:
    """The share of battles won by the first players of matches."""
    return sum(match.wins for match in matches) / sum(len(match.battles) for match in matches)
