"""The benchmark of GPUs on a machine without one: its logic, its file and its page."""

import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))  # the benchmarks are no installed package

from benchmarks.gpu import __main__ as command  # noqa: E402
from benchmarks.gpu import engine, page, speed  # noqa: E402
from benchmarks.gpu.results import PARTS, last_of_each, read  # noqa: E402
from benchmarks.gpu.setting import Setting  # noqa: E402

CPU = torch.device("cpu")


class Kept(list):
    def __call__(self, entry):
        self.append(entry)


def small(seconds=600.0):
    return Setting(CPU, Kept(), seconds)


class TestParts:
    def test_the_parts_of_an_iteration_are_all_of_it(self):
        numbers = speed.measure(small(), "skirmish", 2, 8)
        shares = {name: numbers[f"{name}, %"] for name in speed.PARTS}
        assert sum(shares.values()) == pytest.approx(100.0)
        assert min(shares.values()) > 0.0
        assert numbers["samples/s"] == pytest.approx(80 / (numbers["collecting, s"] + numbers["update, s"]))

    @pytest.mark.slow
    @pytest.mark.parametrize("part", PARTS)
    def test_every_part_runs_and_says_that_nothing_was_measured(self, part, tmp_path, capsys):
        assert command.run(part, CPU, tmp_path / "gpu.json") == 0
        assert command.UNMEASURED in capsys.readouterr().out
        (run,) = read(tmp_path / "gpu.json")
        assert (run.part, run.measured, run.machine["gpu"]) == (part, False, None)
        assert run.entries and all(entry.numbers for entry in run.entries)
        assert last_of_each([run]) == {}

    def test_an_engine_that_differs_is_reported(self, monkeypatch):
        assert engine.equality(small(), "duel", 2, 12) == {"equal decisions": 24.0}
        working = engine.kernels_as_c()

        def idle(kernel, words, count):
            if kernel != "write_global_states":
                working(kernel, words, count)

        monkeypatch.setattr(engine, "kernels_as_c", lambda: idle)
        with pytest.raises(RuntimeError, match=r"these differ: masks and states, 1; masks and states, 2$"):
            engine.equality(small(), "duel", 2, 3)

    def test_a_machine_with_one_gpu_measures_no_two(self, tmp_path, capsys, monkeypatch):
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
        monkeypatch.setattr(command, "describe", lambda device: {"gpu": "one"})
        assert command.run("gpus", torch.device("cuda:0"), tmp_path / "gpu.json") == 0
        assert "one GPU here" in capsys.readouterr().out
        assert last_of_each(read(tmp_path / "gpu.json")) == {}


class TestFile:
    def test_a_file_that_holds_something_else_is_left_alone(self, tmp_path, capsys):
        file = tmp_path / "mine.json"
        file.write_text("{}")
        assert command.main(["speed", "--device", "cpu", "--out", str(file)]) == 2
        assert "holds no results of benchmarks.gpu" in capsys.readouterr().err
        assert file.read_text() == "{}"


class TestPage:
    def test_the_page_is_made_from_the_published_file(self):
        runs = read(page.PUBLISHED) if page.PUBLISHED.exists() else []
        text = page.PAGE.read_text(encoding="utf-8")
        assert page.filled_page(text, runs) == text
        assert all(f"<!-- gpu: {part} -->" in text for part in PARTS)
