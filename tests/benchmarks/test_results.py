"""Results of the benchmark: files of them, goals, and the page and picture that show them."""

import dataclasses
import json
import math
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))  # the benchmarks are no installed package

from benchmarks.goals import GOALS, HOLDS, MISSED, UNKNOWN, Goal, table_of_goals  # noqa: E402
from benchmarks.machine import describe  # noqa: E402
from benchmarks.results import TABLES, Results, read_results  # noqa: E402
from benchmarks.tables import Table  # noqa: E402

from benchmarks import __main__ as command  # noqa: E402
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

    def test_every_section_has_tables_that_are_expected(self):
        assert tuple(TABLES) == tuple(command.SECTIONS)

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

    @pytest.mark.parametrize("text", ["", "[]", '{"schema": 99}', '{"schema": 2, "machine": 1}'])
    def test_other_files_are_refused(self, tmp_path, text):
        (tmp_path / "other.json").write_text(text)
        with pytest.raises(ValueError, match=r"other\.json holds no results"):
            read_results(tmp_path / "other.json")


class TestGoals:
    @pytest.mark.parametrize(("measured", "verdict"), [(None, UNKNOWN), (80.0, HOLDS), (79.0, MISSED)])
    def test_the_least_holds_or_not(self, measured, verdict):
        assert Goal("g", 100, 80, ("s", "t", "r", "c")).holds(measured) == verdict
        assert Goal("g", 1, 2, ("s", "t", "r", "c"), at_most=True).holds(2.1) == MISSED
        assert {table_of_goals(Results({}, 1, {})).cell(goal.name, "holds") for goal in GOALS} == {UNKNOWN}

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

    def test_marks_are_filled_again(self):
        text = "<!-- benchmark: goals -->\nyesterday\n<!-- end -->\nkept\n<!-- benchmark: apis -->\n<!-- end -->\n"
        new = page.filled_page(text, Results({}, 1, {}))
        assert "yesterday" not in new
        assert "kept" in new
        assert page.NOT_MEASURED in new
        assert page.filled_page(new, Results({}, 1, {})) == new

    def test_every_section_is_on_it(self):
        marked = set(re.findall(r"<!-- benchmark: (\w+) -->", page.PAGE.read_text()))
        assert marked == {"machine", "goals", *TABLES}


class TestPublishing:
    @pytest.fixture
    def files(self, monkeypatch, tmp_path, published):  # `published` is read first, where it lies
        """The page, its picture and its results as they would be written."""
        paths = {name: tmp_path / name.lower() for name in ("PAGE", "PICTURE", "PUBLISHED")}
        for name, path in paths.items():
            monkeypatch.setattr(page, name, path)
            path.write_text(
                "<!-- benchmark: machine -->\nold\n<!-- end -->\n<!-- benchmark: resets -->\n<!-- end -->\n"
            )
        published.write(paths["PUBLISHED"])
        return paths

    def test_whole_results_replace_all_three(self, tmp_path, files, published):
        whole = Results(published.machine | {"date": "tomorrow"}, 7, published.sections)
        whole.write(tmp_path / "new.json")
        assert page.main([str(tmp_path / "new.json")]) == 0
        assert read_results(files["PUBLISHED"]) == whole
        assert files["PICTURE"].read_bytes().startswith(b"\x89PNG")
        assert "reset on a map of a pool" in files["PAGE"].read_text()

    def test_sections_of_a_run_take_the_place_of_those_that_there_are(self, tmp_path, files, published):
        costs = published.sections["resets"]["costs"]
        other = dataclasses.replace(costs, notes=("measured again",))
        sections = {"resets": {"costs": other}}
        machine = published.machine | {"processor": "Z80", "date": "tomorrow"}
        Results(machine, 3, sections).write(tmp_path / "new.json")
        assert page.main([str(tmp_path / "new.json")]) == 0
        after = read_results(files["PUBLISHED"])
        assert after.sections == published.sections | sections and list(after.sections) == list(published.sections)
        assert (after.machine, after.later["resets"]["date"]) == (published.machine, "tomorrow")
        text = files["PAGE"].read_text()
        assert "measured again" in text
        assert "In a run of its own, resets: Z80, " in text and ", tomorrow; load" in text
