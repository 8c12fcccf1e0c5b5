"""The runs in a league's folder, as its report shows them: learners and best responses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from echelon_env.evaluate.tables import percent
from echelon_train.config.league import RUNS_FOLDER
from echelon_train.errors import RunFolderError
from echelon_train.report.charts import charts
from echelon_train.report.format import interval, number
from echelon_train.report.markup import Html, element, more, note, table
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
from echelon_train.runs.exploitability import EXPLOITABILITY_FILE, read_exploitability
from echelon_train.runs.folder import RUN_FILE, read_run_config

MOST_RUNS = 100
MOST_READ = 1000
"""Runs whose role is read."""


def exploitability(path: Path) -> Iterator[Html]:
    """A table of the results of best responses in the league's folder of runs."""
    rows = []
    files = sorted((path / RUNS_FOLDER).glob(f"*/{EXPLOITABILITY_FILE}"))
    for file in files[:MOST_RUNS]:
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
    yield from more(len(files), MOST_RUNS)
    yield note(
        "Exploitability: the score of a policy that was trained against the member alone, less one half, with its 95 % "
        "interval. It is a lower bound: a negative number only says that this training found no exploit."
    )


def _exploited(file: Path) -> list[str]:
    found = read_exploitability(file)
    low, high = found.score.low - 0.5, found.score.high - 0.5
    return [
        found.member,
        file.parent.name,
        f"{found.steps:,}{'' if found.done else ' so far'}",
        f"{found.battles:,}",
        *(interval(each.estimate, each.low, each.high) for each in (found.score, found.win_rate)),
        f"{found.exploitability:+.3f} [{low:+.3f}, {high:+.3f}]",
    ]


def read_learners(path: Path) -> tuple[list[RunSource], list[str]]:
    """The runs of learners in the league's folder, at most `MOST_RUNS`, and what is wrong with others or left out."""
    runs: list[RunSource] = []
    problems: list[str] = []
    files = sorted((path / RUNS_FOLDER).glob(f"*/{RUN_FILE}"))
    files = [file for file in files if not (file.parent / EXPLOITABILITY_FILE).is_file()]
    for count, file in enumerate(files):
        if count == MOST_READ or len(runs) + len(problems) == MOST_RUNS:
            most = f"at most {MOST_RUNS} runs of learners, of the first {MOST_READ:,} runs"
            problems.append(f"A report has {most}; others are left out.")
            break
        try:
            if read_run_config(file.parent).league.role != "best_response":
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
        scores = [run.last(f"league/{each}_score") for each in ("mean", "worst", "last")]
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
        "processor time, min",
    ]
    yield table(header, rows, name="learners-table")
    groups = {run.name: [run.metrics] for run in runs}
    curves = [*LEAGUE, *RESULTS, *COMPARED_BATTLES, *LEARNING, *SPEED]
    yield charts([win_rate_comparison(groups), *comparison_charts(groups, curves)])
    yield note(AXES)
