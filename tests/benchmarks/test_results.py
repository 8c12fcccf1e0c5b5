"""Results of the benchmark: files of them, goals, and the page and picture that show them."""

import dataclasses
import json
import math
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))  # the benchmarks are no installed package

from benchmarks.goals import GOALS  # noqa: E402
from benchmarks.machine import describe  # noqa: E402
from benchmarks.results import TABLES, Results, read_results  # noqa: E402
from benchmarks.tables import Table  # noqa: E402

from benchmarks import page  # noqa: E402


@pytest.fixture
def published():
    return read_results(page.PUBLISHED)


class TestResults:
    @pytest.fixture
    def data(self, tmp_path, published):
        published.write(tmp_path / "results.json")
        return json.loads((tmp_path / "results.json").read_text())

    @pytest.mark.parametrize(
        ("damage", "match"),
        [
            (
                lambda data: data["sections"]["resets"][0]["rows"].update({"a map is made": [math.nan]}),
                "finite numbers",
            ),
            (lambda data: data["sections"]["resets"][0]["rows"].update({"a map is made": ["x"]}), "finite numbers"),
            (lambda data: data["sections"].update(apis=[]), "'apis': expected novices, random, got no tables"),
            (lambda data: data["sections"].update(speed=[]), "section 'speed': expected none but apis"),
            (lambda data: data["sections"]["resets"][0].update(name="parts"), "expected costs, got parts"),
            (lambda data: data["sections"]["scaling"][0].update(rows={}), "table 'batch': expected a row"),
            (lambda data: data["sections"]["resets"][0].update(columns=[], rows={"a": []}), "expected columns"),
            (lambda data: data["machine"].pop("processor"), "missing: processor"),
        ],
    )
    def test_damaged_files_are_refused(self, tmp_path, data, damage, match):
        damage(data)
        (tmp_path / "damaged.json").write_text(json.dumps(data))
        with pytest.raises(ValueError, match=rf"damaged\.json holds no results.*{match}"):
            read_results(tmp_path / "damaged.json")

    def test_the_published_ones_are_whole(self, published):
        assert set(published.sections) == set(TABLES)

    def test_are_read_as_they_were_written(self, tmp_path):
        table = Table("t", "T", "s", ("x",), {"a": (1.0,), "b": (None,)}, ("Note.",))
        results = Results(describe(), 3, {"resets": {"costs": dataclasses.replace(table, name="costs")}})
        results.write(tmp_path / "results.json")
        assert read_results(tmp_path / "results.json") == results
        assert results.number("resets", "costs", "a", "x") == 1.0
        assert results.number("resets", "costs", "c", "x") is None
        assert results.number("other", "t", "a", "x") is None


class TestGoals:
    def test_every_goal_is_looked_up_where_the_sections_put_it(self, published):
        found = []

        class Looked(Results):
            def number(self, section, table, row, column):
                found.append(row in self.sections[section][table].rows)
                return 1.0

        looked = Looked(published.machine, 1, published.sections)
        assert all(goal.measured(looked) for goal in GOALS)
        assert all(found)
        assert len(found) > len(GOALS)


class TestPage:
    def test_is_that_of_the_published_results(self, published):
        text = page.PAGE.read_text()
        assert page.filled_page(text, published) == text, "run 'python -m benchmarks.page'"
