"""The benchmark's parts, on made-up numbers and in tiny runs; how fast anything is, is not tested."""

import dataclasses
import json
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT))  # the benchmarks are no installed package

from benchmarks import __main__ as command  # noqa: E402
from benchmarks import faces, page, regression  # noqa: E402
from benchmarks.goals import GOALS, HOLDS, MISSED, UNKNOWN, Goal, table_of_goals  # noqa: E402
from benchmarks.machine import describe  # noqa: E402
from benchmarks.picture import PANELS, save_picture  # noqa: E402
from benchmarks.recording import play, record  # noqa: E402
from benchmarks.resets import resets  # noqa: E402
from benchmarks.results import Results, read_results  # noqa: E402
from benchmarks.scaling import scaling, thread_counts  # noqa: E402
from benchmarks.startup import startup  # noqa: E402
from benchmarks.tables import WIDTH, Table, as_markdown, as_text, by_pairs, number  # noqa: E402
from benchmarks.timing import Effort, interleaved, spread  # noqa: E402

from echelon_env import BattleEngine, MapPool, make_config  # noqa: E402

TINY = Effort(quick=True, rounds=1, decisions=6, peers=Path("nowhere"))


def check_tables(tables):
    """Tables with numbers that are at least zero, which JSON can hold and which fit the terminal."""
    assert len({table.name for table in tables}) == len(tables) > 0
    for table in tables:
        assert Table.from_dict(json.loads(json.dumps(table.to_dict(), allow_nan=False))) == table
        assert all(cell is None or cell >= 0 for cells in table.rows.values() for cell in cells)
        assert max(map(len, as_text(table).splitlines())) <= WIDTH


@pytest.fixture
def published():
    return read_results(page.PUBLISHED)


class TestTables:
    def test_cells_are_found_by_row_and_column(self):
        table = by_pairs("t", "T", "s", {("a", "x"): 1.0, ("a", "y"): 2.0, ("b", "y"): 3.0})
        assert table.columns == ("x", "y")
        assert table.cell("b", "y") == 3.0
        assert table.cell("b", "x") is None
        with pytest.raises(KeyError):
            table.cell("b", "z")

    def test_a_row_of_another_length_is_refused(self):
        with pytest.raises(ValueError, match="row 'a': expected 2 cells, got 1"):
            Table("t", "T", "s", ("x", "y"), {"a": (1.0,)})

    @pytest.mark.parametrize(
        ("value", "text"),
        [(None, "-"), ("yes", "yes"), (0.123, "0.12"), (12.34, "12.3"), (123.4, "123"), (315_432.0, "315,000")],
    )
    def test_numbers_have_three_figures(self, value, text):
        assert number(value) == text

    def test_long_labels_are_cut(self):
        text = as_text(Table("t", "T", "s", ("x",), {"long " * 30: (1.0,), "short": (2.0,)}))
        assert max(map(len, text.splitlines())) <= WIDTH
        assert "2.00" in text

    def test_markdown_has_a_line_for_every_row_and_note(self):
        lines = as_markdown(Table("t", "T", "s", ("x",), {"a": (1.0,), "b": (None,)}, ("Note.",))).splitlines()
        assert lines == ["**T**", "", "| s | x |", "|---|---|", "| a | 1.00 |", "| b | - |", "", "Note."]


class TestTiming:
    def test_rounds_are_interleaved_and_the_first_is_left_out(self):
        calls = []
        plays = {key: (lambda key=key: calls.append(key) or len(calls)) for key in "ab"}
        assert interleaved(plays, 2) == {"a": [3, 5], "b": [4, 6]}
        assert calls == ["a", "b"] * 3

    def test_spread_is_half_the_distance_of_the_quartiles(self):
        assert spread([9.0, 10.0, 10.0, 10.0, 11.0]) == 0.0
        assert spread([8.0, 9.0, 10.0, 11.0, 12.0]) == pytest.approx(0.1)
        assert spread([7.0]) == 0.0


@pytest.fixture(scope="module")
def recording():
    config = make_config("duel", max_steps=4)
    return record(config, "novices", 12, MapPool.generate(config, 2), battles=3)


class TestRecordings:
    def test_battles_begin_anew_the_step_after_their_end(self, recording):
        assert recording.begins[:, 0].tolist() == [t % 5 == 4 for t in range(12)]
        assert recording.battle_steps == (~recording.begins).sum()
        assert recording.agent_steps == 2 * recording.battle_steps

    @pytest.mark.parametrize("make", [faces.engine_face, faces.batch_face, faces.vector_face])
    def test_every_face_plays_the_same_battles(self, recording, make):
        assert make(recording)() > 0

    def test_the_parallel_face_plays_the_same_battle(self):
        config = make_config("skirmish")
        assert faces.parallel_face(record(config, "random", 30, MapPool.generate(config, 2), battles=1))() > 0

    def test_another_end_is_noticed(self, recording):
        other = dataclasses.replace(recording, alive_at_end=~recording.alive_at_end)
        with pytest.raises(RuntimeError, match="another way"):
            faces.engine_face(other)()

    @pytest.mark.parametrize("battles", [2, 7])
    def test_other_numbers_of_places_repeat_the_same_battles(self, recording, battles):
        resized = recording.resized(battles)
        engine = BattleEngine(resized.config, battles, maps=resized.maps)
        play(engine, resized)
        resized.check_end(engine)
        np.testing.assert_array_equal(resized.live, recording.live[:, np.arange(battles) % 3])


class TestSections:
    @pytest.mark.parametrize("section", [faces.faces, resets, scaling, startup])
    def test_tables(self, section):
        check_tables(section(TINY))

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["phases", "floors"])
    def test_tables_of_what_compiles_kernels_of_its_own(self, name):
        check_tables(command.SECTIONS[name](TINY))

    def test_threads_end_with_all_cores(self, monkeypatch):
        monkeypatch.setattr("benchmarks.scaling.cores", lambda: 6)
        assert thread_counts() == (1, 2, 4, 6)


class TestResults:
    def test_are_read_as_they_were_written(self, tmp_path):
        table = Table("t", "T", "s", ("x",), {"a": (1.0,), "b": (None,)}, ("Note.",))
        results = Results(describe(), 3, {"section": {"t": table}})
        results.write(tmp_path / "results.json")
        assert read_results(tmp_path / "results.json") == results
        assert results.number("section", "t", "a", "x") == 1.0
        assert results.number("section", "t", "c", "x") is None
        assert results.number("other", "t", "a", "x") is None

    def test_the_machine_is_named(self):
        assert describe().keys() >= {
            "processor",
            "cores",
            "system",
            "python",
            "numpy",
            "numba",
            "commit",
            "date",
            "load",
        }

    @pytest.mark.parametrize("text", ["", "[]", '{"schema": 99}', '{"schema": 1}', '{"schema": 1, "machine": 1}'])
    def test_other_files_are_refused(self, tmp_path, text):
        (tmp_path / "other.json").write_text(text)
        with pytest.raises(ValueError, match=r"other\.json holds no results"):
            read_results(tmp_path / "other.json")

    def test_a_missing_file_is_named(self, tmp_path):
        with pytest.raises(ValueError, match=r"none\.json: No such file"):
            read_results(tmp_path / "none.json")


class TestGoals:
    @pytest.mark.parametrize(
        ("measured", "floor", "verdict"),
        [(None, 100.0, UNKNOWN), (80.0, None, HOLDS), (79.0, None, MISSED), (79.0, 150.0, MISSED)],
    )
    def test_the_least_holds_or_not(self, measured, floor, verdict):
        assert Goal("g", 100, 80, lambda results: None).holds(measured, floor) == verdict

    def test_a_near_floor_counts(self):
        assert Goal("g", 100, 80, lambda results: None).holds(60.0, 75.0) == "floor / 1.25"

    def test_some_figures_are_not_to_be_exceeded(self):
        goal = Goal("g", 1, 2, lambda results: None, at_most=True)
        assert [goal.holds(value, None) for value in (0.5, 2.0, 2.1)] == [HOLDS, HOLDS, MISSED]

    def test_what_was_not_measured_is_open(self):
        table = table_of_goals(Results({}, 1, {}))
        assert {table.cell(goal.name, "holds") for goal in GOALS} == {UNKNOWN}

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


BASELINE = {"one": 2.0, "two": 4.0}


class TestRegression:
    def verdicts(self, **ratios):
        table, good = regression.compare(ratios, BASELINE)
        return {name: table.cell(name, regression.VERDICT) for name in table.rows}, good

    def test_what_is_within_the_tolerance_is_the_same(self):
        edge = 4.0 * (1 + regression.SLOWER) - 0.001
        assert self.verdicts(one=[1.9, 2.0, 9.0], two=[edge]) == ({"one": "same", "two": "same"}, True)

    def test_the_median_decides(self):
        assert self.verdicts(one=[2.0, 9.0, 9.0], two=[4.0]) == ({"one": "SLOWER", "two": "same"}, False)

    def test_rounds_that_vary_widely_prove_nothing(self):
        assert self.verdicts(one=[2.0, 2.6, 2.6, 3.2, 3.6], two=[4.0]) == ({"one": "same", "two": "same"}, True)
        assert self.verdicts(one=[2.6, 2.6, 2.6, 2.6, 3.6], two=[4.0]) == ({"one": "SLOWER", "two": "same"}, False)

    def test_faster_is_no_failure(self):
        assert self.verdicts(one=[2.0], two=[1.0, 1.0]) == ({"one": "same", "two": "faster"}, True)

    def test_a_baseline_of_other_measurements_is_refused(self):
        with pytest.raises(ValueError, match=r"expected ratios of \['one'\], got \['one', 'two'\]"):
            regression.compare({"one": [1.0]}, BASELINE)

    @pytest.mark.parametrize("text", ["{", '{"schema": 0}', '{"schema": 1, "ratios": {"a": "b"}, "processor": "p"}'])
    def test_other_files_are_refused(self, tmp_path, text):
        (tmp_path / "baseline.json").write_text(text)
        with pytest.raises(ValueError, match="is no baseline"):
            regression.read_baseline(tmp_path / "baseline.json")

    def test_the_kept_baseline_is_of_what_is_measured(self):
        assert set(regression.read_baseline(regression.BASELINE)["ratios"]) == set(regression.measurements(2))

    def test_ratios_are_of_every_measurement_and_round(self, monkeypatch):
        monkeypatch.setattr(regression, "measurements", lambda decisions: {"one": lambda: 0.5, "two": lambda: 0.25})
        ratios = regression.measure(rounds=2, decisions=1)
        assert {name: len(values) for name, values in ratios.items()} == {"one": 2, "two": 2}
        assert all(value > 0 for values in ratios.values() for value in values)


class TestCommand:
    @pytest.fixture
    def section(self, monkeypatch):
        table = Table("costs", "Costs", "ms", ("x",), {"a": (1.0,)})
        monkeypatch.setitem(command.SECTIONS, "resets", lambda effort: [table])
        return table

    def test_writes_results(self, tmp_path, capsys, section):
        assert command.main(["--sections", "resets", "--out", str(tmp_path / "out")]) == 0
        assert read_results(tmp_path / "out" / "results.json").sections == {"resets": {"costs": section}}
        printed = capsys.readouterr().out
        assert "Costs [ms]" in printed
        assert "Goals" in printed

    def test_a_folder_with_files_is_left_alone(self, tmp_path, capsys, section):
        (tmp_path / "mine").write_text("mine")
        assert command.main(["--sections", "resets", "--out", str(tmp_path)]) == 2
        assert [path.name for path in tmp_path.iterdir()] == ["mine"]
        assert "not an empty folder" in capsys.readouterr().err

    @pytest.mark.parametrize(("factor", "status"), [(1.0, 0), (2.0, 1)])
    def test_the_check_says_what_is_slower(self, monkeypatch, capsys, factor, status):
        kept = regression.read_baseline(regression.BASELINE)["ratios"]
        monkeypatch.setattr(regression, "measure", lambda *_: {name: [factor * one] for name, one in kept.items()})
        assert command.main(["--check"]) == status
        assert ("SLOWER" in capsys.readouterr().out) == bool(status)

    def test_a_missing_baseline_is_an_error(self, monkeypatch, tmp_path, capsys):
        monkeypatch.setattr(regression, "BASELINE", tmp_path / "none.json")
        assert command.main(["--check"]) == 2
        assert "--update-baseline" in capsys.readouterr().err

    def test_a_baseline_is_kept(self, monkeypatch, tmp_path):
        monkeypatch.setattr(regression, "BASELINE", tmp_path / "baseline.json")
        monkeypatch.setattr(regression, "measure", lambda *_: {"one": [1.0, 2.0, 9.0]})
        assert command.main(["--update-baseline"]) == 0
        assert regression.read_baseline(tmp_path / "baseline.json")["ratios"] == {"one": 2.0}


class TestPage:
    def test_is_that_of_the_published_results(self, published):
        text = page.PAGE.read_text()
        assert page.filled(text, published) == text, "run 'python -m benchmarks.page'"

    def test_says_the_tolerance(self):
        assert f"more than {100 * regression.SLOWER:.0f} %" in " ".join(page.PAGE.read_text().split())

    def test_marks_are_filled_again(self):
        text = "<!-- benchmark: goals -->\nyesterday\n<!-- end -->\nkept\n<!-- benchmark: faces -->\n<!-- end -->\n"
        new = page.filled(text, Results({}, 1, {}))
        assert "yesterday" not in new
        assert "kept" in new
        assert page.NOT_MEASURED in new
        assert page.filled(new, Results({}, 1, {})) == new

    def test_an_unknown_mark_is_an_error(self):
        with pytest.raises(ValueError, match="got 'speed'"):
            page.filled("<!-- benchmark: speed -->\n<!-- end -->", Results({}, 1, {}))

    def test_picture(self, tmp_path, published):
        save_picture(tmp_path / "picture.png", published)
        assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")

    def test_no_picture_of_nothing(self, tmp_path):
        with pytest.raises(ValueError, match="expected results of one of"):
            save_picture(tmp_path / "picture.png", Results({}, 1, {}))
        assert PANELS
        assert not any(tmp_path.iterdir())
