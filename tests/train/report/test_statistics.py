"""The battle statistics in reports."""

import json
import shutil

import pytest

from echelon_env.evaluate.battle_totals import measures
from echelon_env.evaluate.estimates import wilson
from echelon_env.layout.measures import MEASURES
from echelon_train.report.markup import join
from echelon_train.report.page import Page, write
from echelon_train.report.statistics import statistics_sections
from echelon_train.runs.battle_metrics import RecentBattles
from echelon_train.runs.curves import BATTLES, COMPARED_BATTLES
from train.report import totals
from train.report.parsed import Parsed, number

KEYS = ("recent", "evaluated", "trained")
NAME = '<b>"x"\'&amp;</b>'


def page_of(tmp_path, groups):
    out = tmp_path / "report.html"
    write(out, Page("statistics", join([]), [*statistics_sections(groups)]))
    return Parsed(out)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """A file of statistics, and the page that shows it."""
    folder = tmp_path_factory.mktemp("statistics")
    file = totals.write(folder / "statistics.json")
    return file, page_of(folder, [("run", [folder])])


def chosen(file, key):
    return {"recent": file.training[-1].totals, "evaluated": file.evaluations[-1].totals, "trained": file.total()}[key]


@pytest.mark.parametrize("key", KEYS)
def test_tables_by_opponent_and_class_have_the_numbers_of_the_file(found, key):
    file, page = found
    expected = chosen(file, key)
    header, *rows = page.tables[f"{key}-opponents"]
    assert [row[0] for row in rows] == [*expected.opponents, "all"]
    assert sum(number(row[1]) for row in rows[:-1]) == number(rows[-1][1]) == expected.battles
    for row in rows:
        name = None if row[0] == "all" else row[0]
        results, found_here = expected.results(name), measures(expected.sums("own", name))
        won = wilson(round(results["wins"]), round(results["battles"]))
        assert row[2] == f"{100 * won.estimate:.1f} [{100 * won.low:.1f}, {100 * won.high:.1f}]"
        cells = dict(zip(header, row, strict=True))
        for each in MEASURES:
            value, cell = found_here[each.name], cells[each.heading]
            if value is None:
                assert cell == "-"
            else:
                scale, digits = (100, 0.051) if each.is_share else (1, 0.0051)
                assert number(cell) == pytest.approx(scale * value, rel=0.005, abs=digits)
    classes = page.column(f"{key}-classes", "mechs")
    assert number(classes["own heavy"]) + number(classes["own scout"]) == number(classes["own, all"])
    assert number(classes["own, all"]) == expected.sums("own")["mechs"]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("side", ["own", "enemy"])
def test_tables_by_weapon_and_cause_add_up(found, key, side):
    file, page = found
    sums = chosen(file, key).sums(side)
    for table, columns in (
        (f"{key}-weapons-{side}", {"shots": "shots", "hits": "hits", "damage": "damage_dealt", "kills": "kills"}),
        (f"{key}-causes-{side}", {"damage taken": "damage_taken", "deaths": "deaths"}),
    ):
        for heading, name in columns.items():
            cells = {row: cell for row, cell in page.column(table, heading).items() if not row.startswith("while")}
            whole = number(cells.pop("all"))
            assert whole == pytest.approx(sums[name], abs=0.5)
            assert sum(map(number, cells.values())) == pytest.approx(whole, abs=0.5 * len(cells))


def test_every_measure_is_a_metric_and_in_a_chart():
    recent = RecentBattles()
    sums = {name: 1.0 for each in MEASURES for name in (each.sum, each.per)} | {"messages": 1.0, "message/0/0": 1.0}
    recent.add("novice", {"heavy": sums, "scout": sums})
    names = [each.name for each in MEASURES if each.chart]
    main = [each.name for each in MEASURES if each.main]
    expected = {*(f"battle/{name}" for name in names), *(f"opponent/novice/{name}" for name in main)}
    assert recent.metrics().keys() >= expected | {f"battle/class/heavy/{name}" for name in main}
    for curves in (BATTLES, COMPARED_BATTLES):
        assert {metric for curve in curves for metric, _ in curve.metrics} >= {f"battle/{name}" for name in names}


def test_names_are_escaped(tmp_path):
    totals.write(tmp_path / "statistics.json", player=NAME, opponents=(NAME,))
    page = page_of(tmp_path, [(NAME, [tmp_path]), ("two", [tmp_path])])
    assert page.column("recent-groups", "battles").keys() == {NAME, "two"}
    assert NAME in page_of(tmp_path, [(NAME, [tmp_path])]).column("recent-opponents", "battles")


def test_without_statistics_a_sentence_says_so(tmp_path):
    page = page_of(tmp_path, [("run", [tmp_path])])
    assert "there is no statistics.json in" in page.text and page.tables == {}


def test_damaged_statistics_are_named_and_leave_the_rest(tmp_path):
    good, bad = tmp_path / "good", tmp_path / "bad"
    for folder in (good, bad):
        folder.mkdir()
        totals.write(folder / "statistics.json")
    document = json.loads((bad / "statistics.json").read_text())
    document["training"][0]["totals"]["opponents"]["novice"]["wins"] = "many"
    (bad / "statistics.json").write_text(json.dumps(document))
    page = page_of(tmp_path, [("good", [good]), ("bad", [bad])])
    assert "bad/statistics.json: " in page.text and page.column("recent-groups", "battles") == {"good": "20"}
    (bad / "statistics.json").write_text("{")
    assert "expected statistics as JSON" in page_of(tmp_path, [("bad", [bad])]).text
    shutil.rmtree(bad)


def test_impossible_results_are_no_error(tmp_path):
    totals.write(tmp_path / "statistics.json")
    document = json.loads((tmp_path / "statistics.json").read_text())
    document["training"][-1]["totals"]["opponents"]["novice"] |= {"battles": 0, "wins": 7}
    (tmp_path / "statistics.json").write_text(json.dumps(document))
    page = page_of(tmp_path, [("run", [tmp_path])])
    assert page.column("recent-opponents", "won, %")["novice"] == "-"
