"""Which metrics are drawn, of one run and of several, and their pictures."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from echelon_env.evaluate.estimates import interquartile_mean, stratified_bootstrap
from echelon_env.layout.actions import BLOCKS
from echelon_env.layout.measures import MEASURES, Measure
from echelon_env.opponents import LEVELS
from echelon_train.runs.battle_metrics import RECENT
from echelon_train.runs.charts import Array, Chart, Line, save_picture
from echelon_train.runs.folder import read_metrics
from echelon_train.runs.metrics import (
    EVALUATION_STEPS,
    SAMPLES_LABEL,
    STEPS,
    Metrics,
    common_curves,
    is_number,
    matching,
    points,
    table,
)

CURVES_FILE = "curves.png"
EVALUATION = "eval/win_rate"
AXES = f"Horizontal axes: {SAMPLES_LABEL}."
CAUSES = {"friendly": "team-mates", "own": "its own weapon", "hazard": "lava, debris"}
"""Causes of damage and deaths besides the enemy's weapons."""
_PER_MECH = "per mech and battle"
_MOST_NAMES = 100  # of a pattern
_MOST_GRID = 60  # places at which an interval over seeds is computed


@dataclass(frozen=True)
class Curve:
    """A chart of metrics over the samples."""

    title: str
    metrics: tuple[tuple[str, str], ...]  # (name or pattern, label); the text in place of a * is the label
    remark: str = ""
    share: bool = False
    log: bool = False
    sign: float = 1.0
    several: bool = False  # whether one line alone says nothing that another chart does not
    main: bool = False  # whether it is in the picture of a run's folder


def _one(
    title: str,
    metric: str,
    remark: str = "",
    *,
    share: bool = False,
    log: bool = False,
    sign: float = 1,
    main: bool = False,
) -> Curve:
    return Curve(title, ((metric, title),), remark, share, log, sign, main=main)


RESULTS = (
    Curve("win rate of evaluations, by opponent", (("eval/win_rate/*", ""),), share=True),
    Curve(
        "win rate in training, by opponent",
        (("opponent/*/win_rate", ""),),
        RECENT,
        True,
        several=True,
        main=True,
    ),
    Curve("score in the league, by level", tuple((f"league/{level}_score", level) for level in LEVELS), share=True),
    Curve(
        "scores in the league",
        (
            ("league/mean_score", "mean"),
            ("league/worst_score", "lowest"),
            ("league/last_score", "last snapshot"),
            ("league/victim_score", "victim"),
        ),
        share=True,
    ),
    Curve("handicap: rate of fire", (("opponent/*/handicap/fire_rate", ""),)),
    Curve(
        "handicap: reaction delay, s",
        (("opponent/*/handicap/reaction_delay", ""),),
    ),
    _one("return", "battle/return", "mean of a mech per battle", main=True),
    _one("length of a battle", "battle/length", "decisions"),
)
LEAGUE = (
    _one("mean score in the league", "league/mean_score", share=True),
    _one("lowest score in the league", "league/worst_score", share=True),
    _one("score against the last snapshot", "league/last_score", share=True),
    _one("score against the victim", "league/victim_score", share=True),
)
"""Of several learners; `RESULTS` has these of one in one chart."""


def _measured(title: str, measures: Sequence[Measure]) -> Curve:
    """A chart of measures of the last training battles."""
    first = measures[0]
    remarks = first.unit if not first.is_share else "", _PER_MECH if first.per == "mechs" else ""
    meaning = first.meaning if len(measures) == 1 else ""
    metrics = tuple((f"battle/{each.name}", each.label) for each in measures)
    return Curve(title, metrics, ", ".join(filter(None, (*remarks, meaning))), first.is_share)


_CHARTS = {each.chart: [other for other in MEASURES if other.chart == each.chart] for each in MEASURES if each.chart}
BATTLES = (
    Curve("reward by component", (("battle/reward/*", ""),), _PER_MECH),
    *(_measured(title, measures) for title, measures in _CHARTS.items()),
    Curve("accuracy by weapon", (("battle/weapon/*/accuracy", ""),), share=True),
    Curve("damage by weapon", (("battle/weapon/*/damage", ""),), f"HP, {_PER_MECH}"),
    Curve(
        "deaths by cause",
        (
            ("battle/death/weapon/*", ""),
            *((f"battle/death/{cause}", label) for cause, label in CAUSES.items()),
            ("battle/death/while_shut_down", "while shut down"),
            ("battle/death/while_fallen", "while knocked down"),
        ),
        share=True,
    ),
    Curve("damage dealt by class", (("battle/class/*/damage_dealt", ""),), f"HP, {_PER_MECH}"),
    Curve("return by class", (("battle/class/*/return", ""),), _PER_MECH),
    Curve("damage dealt, by opponent", (("opponent/*/damage_dealt", ""),), f"HP, {_PER_MECH}", several=True),
    Curve("deaths, by opponent", (("opponent/*/deaths", ""),), _PER_MECH, several=True),
)
COMPARED_BATTLES = tuple(_measured(each.label, [each]) for each in MEASURES if each.chart)
"""Single metrics, for several runs."""
LEARNING = (
    _one("entropy", "train/entropy_loss", "nats", sign=-1.0, main=True),
    Curve(
        "entropy by block of the action",
        tuple((f"train/entropy_{each.name}", each.name) for each in BLOCKS),
        "nats",
    ),
    _one("KL divergence of an update", "train/approx_kl", "nats", main=True),
    _one("clip fraction", "train/clip_fraction", share=True),
    _one("explained variance", "train/explained_variance", main=True),
    _one("value loss", "train/value_loss", log=True, main=True),
    _one("policy loss", "train/policy_gradient_loss"),
    _one("gradient norm", "train/grad_norm", "before clipping", log=True),
    _one("learning rate", "train/learning_rate", main=True),
    Curve("loss of the teacher's labels", (("train/kickstart_loss_*", ""),), "nats", main=True),
)
SPEED = (
    _one("samples per second", "time/fps", "mean so far", main=True),
    _one("processor time", "time/cpu_minutes", "minutes of all processes"),
    _one("battles", "battle/count"),
)


PICTURE = tuple(each for each in (*RESULTS, *LEARNING, *SPEED) if each.main)
"""Of the picture in a run's folder, besides the win rate."""

Groups = Mapping[str, Sequence[Metrics]]
"""The metrics of runs that differ in their seeds only, by the group's label."""


def save_run_curves(run: Path) -> None:
    """Draw a run's metrics into ``curves.png`` in its folder, with the changes of a curriculum's stage.

    Raises OSError and RunFolderError if the metrics cannot be read, or the picture cannot be written.
    """
    metrics = read_metrics(run)
    charts = [win_rate_chart(metrics), *run_charts(metrics, PICTURE)]
    save_picture(run / CURVES_FILE, run.resolve().name, charts, SAMPLES_LABEL)


def save_comparison(path: Path, title: str, groups: Groups) -> None:
    """Draw the win rates of groups of runs in their evaluations into a PNG. Raises OSError."""
    save_picture(path, title, [win_rate_comparison(groups)], SAMPLES_LABEL)


def run_charts(metrics: Metrics, curves: Sequence[Curve]) -> Iterator[Chart]:
    """The charts of one run that have at least two values other than one constant 0."""
    for curve in curves:
        lines = [
            Line(label, *_signed(metrics, metric, curve.sign), points=metric.startswith("eval/"))
            for metric, label in _metrics(metrics, curve)
            if len(points(metrics, metric)[0])
        ]
        if len(lines) > curve.several and _worth_drawing(curve, lines):
            yield _chart(curve, lines, marks=stages(metrics))


def win_rate_chart(metrics: Metrics) -> Chart | None:
    """The win rates in training and in evaluations, with the latter's intervals; None without any."""
    lines = []
    steps, values = points(metrics, "battle/win_rate")
    if len(steps):
        lines.append(Line(f"training, {RECENT}", steps, values))
    found = table(metrics, EVALUATION_STEPS, EVALUATION, f"{EVALUATION}_low", f"{EVALUATION}_high")
    if len(found):
        x, y, low, high = found.T
        lines.append(Line("evaluation, 95 % interval", x, y, np.array([low, high]), colour=3, points=True))
    return Chart("win rate", lines, share=True, marks=stages(metrics)) if lines else None


def comparison_charts(groups: Groups, curves: Sequence[Curve]) -> Iterator[Chart]:
    """The charts of single metrics that at least one group has: the runs pale, and the median of each group."""
    for curve in curves:
        if len(curve.metrics) > 1 or "*" in curve.metrics[0][0]:
            continue
        lines = [line for number, group in enumerate(groups.items()) for line in _group_lines(*group, number, curve)]
        if _worth_drawing(curve, lines):
            yield _chart(curve, lines, legend=True)


def win_rate_comparison(
    groups: Groups, metric: str = EVALUATION, title: str = "win rate of evaluations"
) -> Chart | None:  # fmt: skip
    """The interquartile means of groups over their seeds, with bootstrap intervals; of one run, its own curve."""
    lines: list[Line] = []
    for number, (label, runs) in enumerate(groups.items()):
        found = [curve for metrics in runs if len((curve := points(metrics, metric))[0])]
        if len(found) == 1:
            lines.append(Line(label, *found[0], colour=number, points=True))
        elif found:
            lines += [Line("", x, y, colour=number, pale=True) for x, y in found]
            lines += _interval_over_seeds(label, found, number)
    several = any(len(runs) > 1 for runs in groups.values())
    remark = "95 % bootstrap interval over the seeds" if several else ""
    return Chart(title, lines, remark, share=True, legend=True) if lines else None


def stages(metrics: Metrics) -> list[tuple[float, str]]:
    """Samples and names of the scenarios that a curriculum has changed to."""
    scenarios = [
        (float(line[STEPS]), str(line["curriculum/scenario"]))
        for line in metrics
        if "curriculum/scenario" in line and is_number(line[STEPS])
    ]
    return [after for before, after in itertools.pairwise(scenarios) if before[1] != after[1]][:20]


def _worth_drawing(curve: Curve, lines: Sequence[Line]) -> bool:
    """Whether there are two values in a line, and not all are 0, unless they are shares such as win rates."""
    return any(len(line.x) > 1 for line in lines) and (curve.share or any(line.y.any() for line in lines))


def _chart(curve: Curve, lines: Sequence[Line], marks: Sequence[tuple[float, str]] = (), legend: bool = False) -> Chart:
    log = curve.log and all((line.y > 0).all() for line in lines)
    return Chart(curve.title, lines, curve.remark, curve.share, log, marks, legend)


def _metrics(metrics: Metrics, curve: Curve) -> Iterator[tuple[str, str]]:
    for name, label in curve.metrics:
        if "*" in name:
            found = matching(metrics, name).items()
            yield from ((metric, text) for text, metric in itertools.islice(found, _MOST_NAMES))
        else:
            yield name, label


def _signed(metrics: Metrics, metric: str, sign: float) -> tuple[Array, Array]:
    steps, values = points(metrics, metric)
    return steps, sign * values


def _group_lines(label: str, runs: Sequence[Metrics], number: int, curve: Curve) -> Iterator[Line]:
    ((metric, _),) = curve.metrics
    found = [each for metrics in runs if len((each := _signed(metrics, metric, curve.sign))[0])]
    if len(found) == 1:
        yield Line(label, *found[0], colour=number)
        return
    yield from (Line("", x, y, colour=number, pale=True) for x, y in found)
    if found and (grid := common_curves(found))[0].size:
        yield Line(f"{label}, median of {len(found)}", grid[0], np.median(grid[1], axis=0), colour=number)


def _interval_over_seeds(label: str, curves: Sequence[tuple[Array, Array]], number: int) -> list[Line]:
    grid, values = common_curves(curves)
    if not grid.size:
        return []
    if len(grid) > _MOST_GRID:
        kept = np.unique(np.linspace(0, len(grid) - 1, _MOST_GRID).round().astype(int))
        grid, values = grid[kept], values[:, kept]
    found = [stratified_bootstrap({"": np.clip(column, 0, 1)}, interquartile_mean) for column in values.T]
    interval = np.array([[each.low for each in found], [each.high for each in found]])
    y = np.array([each.estimate for each in found])
    return [Line(f"{label}, IQM of {len(curves)}", grid, y, interval, colour=number)]
