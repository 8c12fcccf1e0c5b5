"""The benchmark's parts, on made-up numbers and in tiny runs; how fast anything is, is not tested."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))  # the benchmarks are no installed package

from benchmarks.recording import record  # noqa: E402
from benchmarks.resets import resets  # noqa: E402
from benchmarks.results import read_results  # noqa: E402
from benchmarks.scaling import scaling  # noqa: E402
from benchmarks.startup import startup  # noqa: E402
from benchmarks.tables import WIDTH, Table, as_text  # noqa: E402
from benchmarks.timing import Effort  # noqa: E402
from benchmarks.training import training  # noqa: E402

from benchmarks import __main__ as command  # noqa: E402
from benchmarks import apis, regression  # noqa: E402
from echelon_env import MapPool, make_config  # noqa: E402

TINY = Effort(quick=True, rounds=1, decisions=7)


def check_tables(tables):
    """Tables with numbers that are at least zero, which JSON can hold and which fit the terminal."""
    assert len({table.name for table in tables}) == len(tables) > 0
    for table in tables:
        assert Table.from_dict(json.loads(json.dumps(table.to_dict(), allow_nan=False))) == table
        assert all(cell is None or cell >= 0 for cells in table.rows.values() for cell in cells)
        assert max(map(len, as_text(table).splitlines())) <= WIDTH


@pytest.fixture(scope="module")
def recording():
    config = make_config("duel", max_steps=4)
    return record(config, "novices", 12, MapPool.generate(config, 2), battles=3)


@pytest.fixture(scope="module")
def deadly():
    """Battles in one place: one to its end, then one that goes on, with dead mechs in both."""
    config = make_config("skirmish")
    recording = record(config, "novices", 240, MapPool.generate(config, 2), battles=1)
    (end,) = np.flatnonzero(recording.begins)
    assert max(recording.live[end - 1], recording.live[-1]) < config.num_mechs == recording.live[end + 1]
    return recording


SINGLE = [apis.single_replay, apis.parallel_replay, apis.aec_replay]


class TestRecordings:
    def test_battles_restart_the_step_after_their_end(self, recording):
        assert recording.begins[:, 0].tolist() == [t % 5 == 4 for t in range(12)]
        assert recording.battle_steps == (~recording.begins).sum()
        assert recording.agent_steps == 2 * recording.battle_steps

    @pytest.mark.parametrize("make", [apis.engine_replay, apis.batch_replay, apis.vector_replay])
    def test_every_api_plays_the_same_battles(self, recording, make):
        assert make(recording)() > 0

    @pytest.mark.parametrize("resets", [False, True])
    @pytest.mark.parametrize("make", SINGLE)
    def test_every_api_of_one_battle_plays_the_same_battles(self, deadly, make, resets):
        replay = make(deadly, resets)
        assert [replay() > 0 for _ in range(2)] == [True, True]


class TestSections:
    @pytest.mark.long
    @pytest.mark.parametrize("section", [apis.apis, resets, scaling, startup, training])
    def test_tables(self, section):
        check_tables(section(TINY))


BASELINE = {"one": 2.0, "two": 4.0}


class TestRegression:
    @pytest.mark.parametrize(
        ("two", "verdict"),
        [([5.99], "same"), ([6.0], "SLOWER"), ([2.7], "same"), ([2.6], "faster"), ([4.0, 4.0, 99.0], "same")],
    )
    def test_a_median_of_half_as_much_again_is_slower(self, two, verdict):
        table, good = regression.compare({"one": [1.9, 2.0, 2.1], "two": two}, BASELINE)
        assert [table.cell(name, regression.VERDICT) for name in ("one", "two")] == ["same", verdict]
        assert good == (verdict != "SLOWER")

    def test_the_kept_baselines_are_of_what_is_measured(self):
        for baseline in regression.read_baselines(regression.BASELINE).values():
            assert set(baseline["ratios"]) == set(regression.measurements(2))


class TestCommand:
    @pytest.fixture
    def section(self, monkeypatch):
        tables = {"costs": Table("costs", "Costs", "ms", ("x",), {"a": (1.0,)})}
        monkeypatch.setitem(command.SECTIONS, "resets", lambda effort: list(tables.values()))
        return tables

    def test_writes_results(self, tmp_path, capsys, section):
        assert command.main(["--sections", "resets", "--out", str(tmp_path / "out")]) == 0
        assert read_results(tmp_path / "out" / "results.json").sections == {"resets": section}
        printed = capsys.readouterr().out
        assert "Costs [ms]" in printed
        assert "Goals" in printed

    def test_a_folder_with_files_is_left_alone(self, tmp_path, capsys, section):
        (tmp_path / "mine").write_text("mine")
        assert command.main(["--sections", "resets", "--out", str(tmp_path)]) == 2
        assert [path.name for path in tmp_path.iterdir()] == ["mine"]
        assert "not an empty folder" in capsys.readouterr().err

    def test_a_missing_baseline_is_an_error_and_another_processor_is_not_compared(self, monkeypatch, tmp_path, capsys):
        monkeypatch.setattr(regression, "processor", lambda: "unknown")
        assert command.main(["--check"]) == 0
        assert capsys.readouterr().out.startswith("No check: there is no baseline of this processor")
        monkeypatch.setattr(regression, "BASELINE", tmp_path / "none.json")
        assert command.main(["--check"]) == 2
        assert "--update-baseline" in capsys.readouterr().err
