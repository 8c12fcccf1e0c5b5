"""The report of several runs: groups that differ in more than the seed, with intervals over the seeds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from echelon_env.evaluate.estimates import interquartile_mean, probability_of_improvement, stratified_bootstrap
from echelon_env.evaluate.tables import plural
from echelon_train.report.charts import charts
from echelon_train.report.format import interval, number
from echelon_train.report.markup import Html, element, folded, join, more, note, section, table
from echelon_train.report.page import Page, write
from echelon_train.report.replays import replays_section
from echelon_train.report.run_report import provenance, run_replays
from echelon_train.report.sources import Group, RunSource, metrics_of, read_groups
from echelon_train.report.statistics import statistics_sections
from echelon_train.runs.curves import (
    AXES,
    COMPARED_BATTLES,
    EVALUATION,
    LEARNING,
    RESULTS,
    SPEED,
    comparison_charts,
    win_rate_comparison,
)

_MOST_DIFFERENCES = 200  # rows
_FEW_SEEDS = 10
_IQM = "interquartile mean"
_LONGEST_REASON = 1000  # characters


def write_comparison(paths: Sequence[Path], out: Path, *, replays: int = 2) -> None:
    """Write the report of several runs as one HTML file; an existing one is replaced.

    The paths are folders of runs, and of experiments of several seeds. Runs that differ in their seed only become one
    group. The report has up to so many `replays`: the last battle that each of the first runs has filmed.

    Raises RunFolderError if a folder holds no run, or a damaged one, or is named twice, and OSError.
    """
    every = read_groups(paths)
    groups = [group for group in every if group.runs]
    firsts = [group.runs[0] for group in groups][:replays]
    shown = [each for run in firsts for each in run_replays(run, 1)]
    runs = [run for group in every for run in (*group.runs, *group.failed)]
    metrics = metrics_of(groups)
    battles = [*comparison_charts(metrics, COMPARED_BATTLES)]
    sections = [
        section("Results", *_results(groups)) if groups else None,
        section("Failed runs", *_failures(runs)) if any(group.failed for group in every) else None,
        section("Settings that differ", _differences(groups)) if len(groups) > 1 else None,
        section("Battles over training", charts(battles)) if battles else None,
        *statistics_sections([(group.label, [run.path for run in group.runs]) for group in groups]),
        replays_section(shown),
        section("Learning", charts(comparison_charts(metrics, LEARNING))),
        section("Speed", charts(comparison_charts(metrics, SPEED))),
        section("Provenance", *(folded(run.name, *provenance(run)) for run in runs)),
    ]
    page = Page(
        title=every[0].label if len(every) == 1 else " and ".join(_shown([group.label for group in every])),
        lead=element("p", f"{plural(len(runs), 'run')} in {plural(len(every), 'group')}: ", _members(every)),
        sections=sections,
        replays=shown,
    )
    write(out, page)


def _shown(labels: Sequence[str]) -> list[str]:
    return [*labels] if len(labels) <= 4 else [*labels[:3], f"{len(labels) - 3} more"]


def _members(groups: Sequence[Group]) -> str:
    parts = []
    for group in groups:
        usable, failed = (", ".join(f"{run.config.seed}" for run in runs) for runs in (group.runs, group.failed))
        texts = [f"seeds {usable}" if usable else "", f"failed: {failed}" if failed else ""]
        parts.append(f"{group.label} ({'; '.join(text for text in texts if text)})")
    return "; ".join(parts) + "."


def _failures(runs: Sequence[RunSource]) -> Iterator[Html]:
    """The runs that failed, with the reasons."""
    rows = [
        [run.name, run.config.seed, f"{run.steps:,}", run.failure[:_LONGEST_REASON]]
        for run in runs
        if run.failure is not None
    ]
    yield table(["run", "seed", "decisions", "why"], rows, name="failed", class_="facts")
    yield note("Curves, medians and other statistics do not have these runs.")


def _results(groups: Sequence[Group]) -> Iterator[Html]:
    metrics = metrics_of(groups)
    trained = win_rate_comparison(metrics, "battle/win_rate", "win rate in training")
    yield charts([win_rate_comparison(metrics), trained, *comparison_charts(metrics, RESULTS)])
    yield note(AXES)
    yield element("h3", "Last evaluations")
    yield final_table(groups)
    yield note(
        "Win rates in per cent. Brackets of single runs are the 95 % intervals of their evaluations; those of the "
        f"median and the {_IQM} are bootstrap intervals over the seeds, rough ones with fewer than {_FEW_SEEDS}. "
        "So far: the run of this seed is not finished."
    )
    pairs = [*_improvements(groups)]
    if pairs:
        yield element("h3", "Probability of improvement")
        yield table(["group", "over", "probability, %"], pairs, name="improvement")
        yield note("That a seed of the group ends with a higher win rate than one of the other, with 95 % intervals.")
    yield folded(
        "All runs",
        table(
            ["run", "seed", "decisions", "win rate, %", "return", "processor time, min"],
            [_run_row(run) for group in groups for run in group.runs],
            name="runs",
        ),
        opened=True,
    )


def final_table(groups: Sequence[Group]) -> Html:
    """The last win rates of the groups, their medians and interquartile means with intervals."""
    header = ["group", "runs", "decisions", "median", _IQM, "lowest", "highest"]
    return table(header, [_final_row(group) for group in groups], name="final")


def _final_row(group: Group) -> list[Any]:
    rates = _rates(group)
    steps = sorted(run.steps for run in group.runs)
    decisions = number(steps[0]) if steps[0] == steps[-1] else f"{steps[0]:,} to {steps[-1]:,}"
    unfinished = sum(run.unfinished for run in group.runs)
    count = f"{len(group.runs)}, {unfinished} so far" if unfinished else f"{len(group.runs)}"
    if not rates:
        return [group.label, count, decisions, "-", "-", "-", "-"]
    if len(rates) == 1:
        (run,) = (each for each in group.runs if each.last(EVALUATION) is not None)
        _, low, high = run.evaluation
        return [group.label, count, decisions, interval(rates[0], low, high), "-", "-", "-"]
    values = {"": np.array(rates)}
    middle, mean = stratified_bootstrap(values, np.median), stratified_bootstrap(values, interquartile_mean)
    texts = [interval(each.estimate, each.low, each.high) for each in (middle, mean)]
    return [group.label, count, decisions, *texts, f"{100 * min(rates):.1f}", f"{100 * max(rates):.1f}"]


def _rates(group: Group) -> list[float]:
    """The last win rates of a group's runs."""
    found = [run.last(EVALUATION) for run in group.runs]
    return [float(np.clip(rate, 0, 1)) for rate in found if rate is not None]


def _improvements(groups: Sequence[Group]) -> Iterator[list[str]]:
    rates = {group.label: _rates(group) for group in groups}
    for (first, ours), (second, theirs) in itertools.islice(itertools.combinations(rates.items(), 2), 100):
        if min(len(ours), len(theirs)) > 1:
            found = probability_of_improvement({"": np.array(ours)}, {"": np.array(theirs)})
            yield [first, second, interval(found.estimate, found.low, found.high)]


def _run_row(run: RunSource) -> list[str]:
    rate = interval(*run.evaluation)
    others = number(run.last("battle/return")), number(run.last("time/cpu_minutes"))
    steps = f"{run.steps:,}{' so far' if run.unfinished else ''}"
    return [run.name, f"{run.config.seed}", steps, rate, *others]


def _differences(groups: Sequence[Group]) -> Html:
    """The settings that differ between groups, seeds aside."""
    settings = [group.runs[0].settings for group in groups]
    names = [name for name in dict.fromkeys(itertools.chain(*settings)) if name != "seed"]
    differing = [name for name in names if len({each.get(name) for each in settings}) > 1]
    if not differing:
        return note("None.")
    rows = [[name, *(each.get(name, "-") for each in settings)] for name in differing[:_MOST_DIFFERENCES]]
    header = ["setting", *(group.label for group in groups)]
    return join([table(header, rows, name="differences", class_="left"), *more(len(differing), _MOST_DIFFERENCES)])
