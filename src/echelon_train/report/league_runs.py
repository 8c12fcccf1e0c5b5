"""The runs of a league's learners, as its report shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from echelon_env.evaluate.tables import percent
from echelon_train.config.league import RUNS_FOLDER
from echelon_train.errors import RunFolderError
from echelon_train.report.charts import charts
from echelon_train.report.format import number
from echelon_train.report.markup import Html, element, note, table
from echelon_train.report.sources import RunSource, read_run
from echelon_train.runs.curves import (
    AXES,
    COMPARED_BATTLES,
    LEAGUE,
    LEARNING,
    RESULTS,
    SPEED,
    comparison_charts,
    win_rate_comparison,
)
from echelon_train.runs.folder import RUN_FILE

MOST_RUNS = 100


def read_learners(path: Path) -> tuple[list[RunSource], list[str]]:
    """The runs of learners in the league's folder, at most `MOST_RUNS`, and what is wrong with others or left out."""
    runs: list[RunSource] = []
    problems: list[str] = []
    files = sorted((path / RUNS_FOLDER).glob(f"*/{RUN_FILE}"))
    for file in files[:MOST_RUNS]:
        try:
            runs.append(read_run(file.parent))
        except (RunFolderError, OSError) as error:
            problems.append(str(error))
    if len(files) > MOST_RUNS:
        problems.append(f"A report has at most {MOST_RUNS} runs of learners; others are left out.")
    return runs, problems


def learners(runs: Sequence[RunSource], problems: Sequence[str]) -> Iterator[Html]:
    """A table of the learners' runs and their curves, after what is wrong with others."""
    yield from (element("p", problem, class_="warning") for problem in problems)
    if not runs:
        yield note("The league's folder has no runs of learners (runs/).")
        return
    rows = []
    for run in runs:
        scores = [run.last(f"league/{each}_score") for each in ("mean", "worst", "last", "victim")]
        texts = ["-" if score is None else percent(score) for score in scores]
        rows.append(
            [
                run.name,
                run.config.league.name,
                run.config.league.role,
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
        "victim, %",
        "processor time, min",
    ]
    yield table(header, rows, name="learners-table")
    groups = {run.name: [run.metrics] for run in runs}
    curves = [*LEAGUE, *RESULTS, *COMPARED_BATTLES, *LEARNING, *SPEED]
    yield charts([win_rate_comparison(groups), *comparison_charts(groups, curves)])
    yield note(AXES)
