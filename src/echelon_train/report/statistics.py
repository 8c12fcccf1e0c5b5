"""The battle statistics of a report: tables by opponent, mech class, weapon, reward and cause, and heat maps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from echelon_env.evaluate.battle_totals import (
    HEAT_MAPS,
    SIDES,
    BattleTotals,
    Side,
    Sums,
    by_weapon,
    measures,
    parts_of,
    ratio,
    sum_of,
)
from echelon_env.evaluate.estimates import wilson
from echelon_env.evaluate.statistics_file import STATISTICS_FILE, StatisticsError, StatisticsFile, read_statistics
from echelon_env.evaluate.tables import percent, plural
from echelon_env.layout.measures import MEASURES
from echelon_train.report.charts import embed
from echelon_train.report.format import interval, mean
from echelon_train.report.markup import Html, element, folded, join, note, section, table, total
from echelon_train.runs.charts import Array, style
from echelon_train.runs.curves import CAUSES

MOST_OPPONENTS = 50
"""Rows of a table by opponent."""
MOST_SIZES = 4
"""Sizes of maps with heat maps."""
ALL = "all"
_MAP_SIZE = 2.9, 2.6  # inches
_ROOT = 0.5  # exponent of a heat map's colours: the square root shows places that mechs pass through
_KINDS = {
    "presence": ("movement", "s"),
    "deaths": ("deaths", ""),
    "damage_dealt": ("damage dealt", "hit points"),
    "damage_taken": ("damage taken", "hit points"),
}
_HEADINGS = [each.heading for each in MEASURES]
_EXPLANATION = (
    "Shares are in per cent; distances and message entropies are means; the others are per mech and battle. "
    + "; ".join(f"{each.label}: {each.meaning}" for each in MEASURES)
    + "."
)


@dataclass(frozen=True)
class _Battles:
    """Totals to show, and which battles they are of."""

    key: str  # in the ids of tables
    title: str
    totals: BattleTotals


def statistics_sections(groups: Sequence[tuple[str, Sequence[Path]]]) -> Iterator[Html]:
    """The sections of battle statistics, of one group of runs, or of several in comparison.

    A group is a label, and the folders of runs whose statistics add up. Of runs without a readable file a sentence says
    so.
    """
    found: dict[str, list[StatisticsFile]] = {}
    problems, missing = [], []
    for label, folders in groups:
        for folder in folders:
            try:
                found.setdefault(label, []).append(read_statistics(folder / STATISTICS_FILE))
            except FileNotFoundError:
                missing.append(str(folder))
            except (StatisticsError, OSError) as error:
                problems.append(str(error))
    if missing:
        problems.append(f"No battle statistics have been kept, there is no {STATISTICS_FILE} in {', '.join(missing)}.")
    notes = [note(each) for each in problems]
    chosen = {label: [*_choose(files)] for label, files in found.items() if files}
    if len(groups) > 1 and chosen:
        yield section("Battle statistics", *notes, *_comparison(chosen))
    elif any(chosen.values()):
        (battles,) = chosen.values()
        parts = [
            folded(each.title, *battle_tables(each.key, each.totals), opened=not n) for n, each in enumerate(battles)
        ]
        yield section("Battle statistics", *notes, *parts, note(_EXPLANATION))
        yield section("Heat maps", *_heat_maps(battles))
    elif notes:
        yield section("Battle statistics", *notes)


def _choose(files: Sequence[StatisticsFile]) -> Iterator[_Battles]:
    """The last period of training, the last evaluation, and all of training, of the runs of a group together."""
    periods = [file.training[-1] for file in files if file.training]
    evaluations = [file.evaluations[-1] for file in files if file.evaluations]
    if periods:
        first, last = min(each.first for each in periods), max(each.last for each in periods)
        totals = BattleTotals.merged(each.totals for each in periods)
        yield _Battles("recent", f"Training, decisions {first:,} to {last:,}, {_battles(totals)}", totals)
    if evaluations:
        steps = max(each.steps for each in evaluations)
        totals = BattleTotals.merged(each.totals for each in evaluations)
        yield _Battles("evaluated", f"Last evaluation, after {steps:,} decisions, {_battles(totals)}", totals)
    if any(len(file.training) > 1 for file in files):
        totals = BattleTotals.merged(file.total() for file in files)
        yield _Battles("trained", f"All of training, {_battles(totals)}", totals)


def _battles(totals: BattleTotals) -> str:
    return plural(totals.battles, "battle")


def battle_tables(key: str, totals: BattleTotals) -> Iterator[Html]:
    """The tables of some battles; `key` begins their ids."""
    for title, name, made in (
        ("By opponent", "opponents", opponents_table),
        ("By mech class", "classes", classes_table),
        ("By weapon", "weapons", weapons_table),
        ("Reward by component", "rewards", rewards_table),
        ("Damage taken and deaths by cause", "causes", causes_table),
    ):
        yield element("h3", title)
        yield made(f"{key}-{name}", totals)


def opponents_table(name: str, totals: BattleTotals) -> Html:
    """Results and measures of the own side against each opponent, the most frequent first, and against all."""
    by_battles = sorted(totals.opponents, key=lambda each: -totals.results(each)["battles"])
    rows = [_opponent_row(each, totals.results(each), totals.sums("own", each)) for each in by_battles[:MOST_OPPONENTS]]
    rows.append(_opponent_row(total(ALL), totals.results(), totals.sums("own")))
    header = [
        "opponent",
        "battles",
        "won, %",
        "drawn, %",
        "lost, %",
        "length, s",
        "zone score",
        "enemy's",
        *_HEADINGS,
    ]
    more = len(by_battles) - MOST_OPPONENTS
    return join([table(header, rows, name=name), note(f"And {more} more opponents.") if more > 0 else None])


def _opponent_row(name: str, results: Sums, sums: Sums) -> list[Any]:
    battles = round(results["battles"])
    won = wilson(round(results["wins"]), battles) if battles > 0 and results["wins"] <= battles else None
    shares = [percent(ratio(results, each, "battles")) for each in ("draws", "losses")]
    means = [mean(ratio(results, each, "battles")) for each in ("seconds", "own_score", "enemy_score")]
    wins = "-" if won is None else interval(won.estimate, won.low, won.high)
    return [name, f"{battles:,}", wins, *shares, *means, *_measured(sums)]


def classes_table(name: str, totals: BattleTotals) -> Html:
    """Measures of the mech classes of both sides."""
    rows = []
    for side in SIDES:
        classes = totals.by_class(side)
        rows += [
            [f"{side} {each}", f"{sums.get('mechs', 0):,.0f}", *_measured(sums)]
            for each, sums in sorted(classes.items())
        ]
        if len(classes) > 1:
            every = totals.sums(side)
            rows.append([total(f"{side}, {ALL}"), f"{every.get('mechs', 0):,.0f}", *_measured(every)])
    return table(["class", "mechs", *_HEADINGS], rows, name=name)


def weapons_table(name: str, totals: BattleTotals) -> Html:
    """Shots, hits, damage and kills of the weapons of both sides, a table each."""
    tables = []
    for side in SIDES:
        weapons = by_weapon(totals.sums(side))
        rows = [_weapon_row(each, sums) for each, sums in sorted(weapons.items(), key=lambda item: -item[1]["damage"])]
        rows.append(_weapon_row(total(ALL), sum_of(weapons.values())))
        header = [f"{side}: weapon", "shots", "no target, %", "hits", "accuracy, %", "damage", "per shot", "kills"]
        tables.append(table(header, rows, name=f"{name}-{side}"))
    return element("div", *tables, class_="beside")


def _weapon_row(name: str, sums: Sums) -> list[str]:
    shots, hits, damage = (f"{sums.get(each, 0.0):,.0f}" for each in ("shots", "hits", "damage"))
    untargeted, accuracy = (percent(ratio(sums, each, "shots")) for each in ("untargeted", "hits"))
    per_shot = mean(ratio(sums, "damage", "shots"))
    return [name, shots, untargeted, hits, accuracy, damage, per_shot, f"{sums.get('kills', 0.0):,.1f}"]


def rewards_table(name: str, totals: BattleTotals) -> Html:
    """The mean weighted reward of an own mech per battle, by component and class."""
    classes = totals.by_class("own")
    columns = {ALL: totals.sums("own"), **(dict(sorted(classes.items())) if len(classes) > 1 else {})}
    components = dict.fromkeys(each for sums in columns.values() for each in parts_of(sums, "reward"))
    rows = [
        [each, *(_signed(ratio(sums, f"reward/{each}", "mechs")) for sums in columns.values())] for each in components
    ]
    rows.append([total("return"), *(_signed(ratio(sums, "reward", "mechs")) for sums in columns.values())])
    return table(["component", *columns], rows, name=name)


def causes_table(name: str, totals: BattleTotals) -> Html:
    """Hit points that mechs of both sides lost, and their deaths, by cause, a table each."""
    tables = []
    for side in SIDES:
        sums = totals.sums(side)
        taken, deaths = parts_of(sums, "taken"), parts_of(sums, "death")
        rows = [
            [
                CAUSES.get(cause) or cause.removeprefix("weapon/"),
                *_cause(taken.get(cause, 0.0), deaths.get(cause, 0.0), sums),
            ]
            for cause in sorted(taken.keys() | deaths.keys(), key=lambda each: -taken.get(each, 0.0))
        ]
        rows.append([total(ALL), *_cause(sums.get("damage_taken", 0.0), sums.get("deaths", 0.0), sums)])
        for condition, text in (("shut_down", "while shut down by heat"), ("fallen", "while knocked down")):
            rows.append([text, "", "", *_cause(0.0, sums.get(f"deaths_{condition}", 0.0), sums)[2:]])
        header = [f"{side}: cause", "damage taken", "%", "deaths", "%"]
        tables.append(table(header, rows, name=f"{name}-{side}"))
    return element("div", *tables, class_="beside")


def _cause(taken: float, deaths: float, sums: Sums) -> list[str]:
    of_taken = taken / sums["damage_taken"] if sums.get("damage_taken") else None
    of_deaths = deaths / sums["deaths"] if sums.get("deaths") else None
    return [f"{taken:,.0f}", percent(of_taken), f"{deaths:,.1f}", percent(of_deaths)]


def _measured(sums: Sums) -> list[str]:
    found = measures(sums)
    return [percent(found[each.name]) if each.is_share else mean(found[each.name]) for each in MEASURES]


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.2f}"


def _comparison(chosen: Mapping[str, Sequence[_Battles]]) -> Iterator[Html]:
    """Measures, rewards and weapons of the own side of several groups."""
    for key, title in (("recent", "Last period of training"), ("evaluated", "Last evaluation")):
        totals = {label: each.totals for label, battles in chosen.items() for each in battles if each.key == key}
        if totals:
            sums = {label: each.sums("own") for label, each in totals.items()}
            rows = [[label, f"{totals[label].battles:,}", *_measured(each)] for label, each in sums.items()]
            yield element("h3", title)
            yield table(["group", "battles", *_HEADINGS], rows, name=f"{key}-groups")
            yield folded("Reward by component", _across(f"{key}-rewards", sums, "component", _rewards))
            yield folded("Accuracy by weapon, %", _across(f"{key}-accuracy", sums, "weapon", _accuracies))
    yield note(_EXPLANATION)


def _across(name: str, groups: Mapping[str, Sums], what: str, texts: Callable[[Sums], Mapping[str, str]]) -> Html:
    """A table of some numbers by name (rows) and group (columns)."""
    columns = {label: texts(sums) for label, sums in groups.items()}
    names = dict.fromkeys(each for column in columns.values() for each in column)
    rows = [[each, *(column.get(each, "-") for column in columns.values())] for each in names]
    return table([what, *columns], rows, name=name)


def _rewards(sums: Sums) -> dict[str, str]:
    return {each: _signed(ratio(sums, f"reward/{each}", "mechs")) for each in parts_of(sums, "reward")}


def _accuracies(sums: Sums) -> dict[str, str]:
    return {each: percent(ratio(of, "hits", "shots")) for each, of in sorted(by_weapon(sums).items())}


def _heat_maps(battles: Sequence[_Battles]) -> Iterator[Html]:
    shown = [each for each in battles if each.totals.heatmaps][:2]
    for place, each in enumerate(shown):
        parts = []
        for size, maps in sorted(each.totals.heatmaps.items())[:MOST_SIZES]:
            parts.append(element("h3", f"Maps of {size} m"))
            for side, kinds in zip(SIDES, maps, strict=True):
                parts.append(element("div", *_figures(side, kinds, maps, size), class_="maps"))
        yield folded(each.title, *parts, opened=not place)
    if not shown:
        yield note("No heat maps have been kept.")
        return
    yield note(
        "Seen from above and turned so that the own team starts at the lower left; the enemy comes from the far side. "
        "Axes in m. Brightness is the square root of the number; both sides have the same scale. Most: in one cell. "
        "Damage dealt is at the place of the mech that dealt it, damage taken at that of the mech that took it."
    )


def _figures(side: Side, kinds: Array, both: Array, size: int) -> Iterable[Html]:
    """The four heat maps of a side, (4, rows, columns); `both` has those of both sides, for their scale."""
    for number_of_kind, kind in enumerate(HEAT_MAPS):
        title, unit = _KINDS[kind]
        values = kinds[number_of_kind]
        remark = f"sum {mean(float(values.sum()))}, most {mean(float(values.max()))} {unit}".strip()
        yield heat_map(f"{side}: {title}", values, size, remark, float(both[:, number_of_kind].max()))


def heat_map(title: str, values: Array, size: int, remark: str, most: float) -> Html:
    """A heat map (rows, columns) of a map of `size` m, with row 0 at the bottom; `most` has the brightest colour."""
    with style():
        figure = Figure(_MAP_SIZE, layout="constrained")
        axes = figure.subplots()
        norm = PowerNorm(_ROOT, 0.0, max(most, 1e-9))
        shown = np.ma.masked_equal(values, 0.0)
        axes.imshow(
            shown, origin="lower", extent=(0, size, 0, size), cmap="inferno", norm=norm, interpolation="nearest"
        )
        axes.set_facecolor("#0e0b14")
        axes.set_xticks([0, size // 2, size])
        axes.set_yticks([0, size // 2, size])
        axes.grid(visible=False)
        axes.tick_params(length=2, labelsize=7)
        return embed(figure, title, [], remark=remark)
