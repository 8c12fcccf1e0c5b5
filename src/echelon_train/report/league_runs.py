"""The runs in a league's folder, as its report shows them: learners and best responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from echelon_env.evaluate.tables import percent
from echelon_train.errors import RunFolderError
from echelon_train.report.charts import charts
from echelon_train.report.curves import (
    AXES,
    COMPARED_BATTLES,
    LEAGUE,
    LEARNING,
    RESULTS,
    SPEED,
    comparison_charts,
    win_rate_comparison,
)
from echelon_train.report.format import interval, number
from echelon_train.report.markup import Html, element, note, table
from echelon_train.report.sources import Group, RunSource, read_json, read_run
from echelon_train.runs.exploitability import EXPLOITABILITY_FILE
from echelon_train.runs.folder import RUN_FILE

RUNS_FOLDER = "runs"
"""Of a league: the runs of its learners and of best responses."""
BEST_RESPONSE = "best_response"
"""The role of a best response."""
MOST_RUNS = 100


def exploitability(path: Path) -> Iterator[Html]:
    """A table of the results of best responses in the league's folder of runs."""
    rows = []
    for file in sorted((path / RUNS_FOLDER).glob(f"*/{EXPLOITABILITY_FILE}"))[:MOST_RUNS]:
        try:
            rows.append(_exploited(file))
        except (RunFolderError, OSError) as error:
            yield note(str(error))
    if not rows:
        yield note("No best response has been trained in the league's folder runs: echelon league exploit.")
        return
    yield table(
        ["member", "run", "decisions", "battles", "score, %", "battles won, %", "exploitability"],
        rows,
        name="exploitability-table",
    )
    yield note("The score of a policy that was trained against the member alone, less one half: a lower bound.")


def _exploited(file: Path) -> list[str]:
    document = read_json(file, f"{file} is missing")
    member = document.get("member")
    if not isinstance(member, str):
        raise RunFolderError(f"{file}: member: expected a name")
    shares = [_share(document.get(name)) for name in ("score", "win_rate")]
    value = document.get("exploitability")
    texts = [number(document.get(name)) for name in ("steps", "battles")]
    done = "" if document.get("done") is True else " so far"
    return [
        member,
        file.parent.name,
        texts[0] + done,
        texts[1],
        *shares,
        "-" if number(value) == "-" else f"{value:+.3f}",
    ]


def _share(document: Any) -> str:
    values = [document.get(name) for name in ("estimate", "low", "high")] if isinstance(document, Mapping) else [None]
    return interval(*values) if all(type(value) in (int, float) for value in values) else "-"


def read_runs(path: Path) -> tuple[list[RunSource], list[str]]:
    """The runs in the league's folder, and what is wrong with others."""
    runs, problems = [], []
    for file in sorted((path / RUNS_FOLDER).glob(f"*/{RUN_FILE}"))[:MOST_RUNS]:
        try:
            runs.append(read_run(file.parent))
        except (RunFolderError, OSError) as error:
            problems.append(str(error))
    return runs, problems


def learners(runs: Sequence[RunSource], problems: Sequence[str]) -> Iterator[Html]:
    """A table of the learners' runs and their curves, after what is wrong with others."""
    yield from (element("p", problem, class_="warning") for problem in problems)
    if not runs:
        yield note("The league's folder has no runs of learners (runs/).")
        return
    rows = []
    for run in runs:
        settings = run.settings
        agent = settings.get("league.agent") or settings.get("league.role", "-")
        scores = [run.last(f"league/{each}_score") for each in ("mean", "worst", "last")]
        texts = ["-" if score is None else percent(score) for score in scores]
        rows.append(
            [
                run.name,
                agent,
                settings.get("league.role", "-"),
                f"{run.steps:,}",
                *texts,
                number(run.last("time/cpu_minutes")),
            ]
        )
    header = [
        "run",
        "agent",
        "role",
        "decisions",
        "mean score, %",
        "lowest, %",
        "last snapshot, %",
        "processor time, min",
    ]
    yield table(header, rows, name="learners-table")
    groups = [Group(run.name, [run]) for run in runs]
    evaluated = win_rate_comparison(groups)
    curves = [*LEAGUE, *RESULTS, *COMPARED_BATTLES, *LEARNING, *SPEED]
    yield charts([*([evaluated] if evaluated else []), *comparison_charts(groups, curves)])
    yield note(AXES)
