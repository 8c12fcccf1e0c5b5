"""The benchmark of GPUs on a machine without one: its logic, its file and its page."""

import json
import os
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))  # the benchmarks are no installed package

from benchmarks.gpu import __main__ as command  # noqa: E402
from benchmarks.gpu import equality, learning, page, processes, setting, speed  # noqa: E402
from benchmarks.gpu import tests as cuda_tests  # noqa: E402
from benchmarks.gpu.results import PARTS, Entry, Run, append, last_of_each, read  # noqa: E402
from benchmarks.gpu.setting import Setting, products  # noqa: E402

from echelon_env.layout.observations import STREAMS, Self  # noqa: E402
from echelon_train.ppo.losses import add_gradients  # noqa: E402

CPU = torch.device("cpu")
MACHINE = {
    "gpu": "H <100>", "gpu_memory": 80.0, "processor": "one", "cores": 16, "torch": "2", "cuda": "13", "commit": "abc",
    "date": "today",
}  # fmt: skip


class Kept(list):
    def __call__(self, entry):
        self.append(entry)


def small(seconds=600.0):
    return Setting(CPU, Kept(), seconds)


def by_name(kept):
    assert [entry.error for entry in kept] == [""] * len(kept)
    return {entry.name: entry.numbers for entry in kept}


class TestParts:
    def test_the_ways_of_computing_are_compared(self):
        made = small()
        equality.equality(made)
        found = by_name(made.keep)
        assert set(found) == {f"{way}, {name}, width 8" for way in ("sparse", "dense") for name in equality.TYPES}
        names = ("log-probability", "value", "entropy", "gradient, relative")
        assert all(found["sparse, float32, width 8"][name] == 0.0 for name in names)
        assert all(0.0 < found["dense, float32, width 8"][name] < 1e-5 for name in names)
        assert all(1e-5 < found["dense, bfloat16, width 8"][name] < 0.1 for name in names)

    @pytest.mark.parametrize("device", ["cpu", "cuda"])
    def test_mechs_die_and_battles_begin_inside_of_chunks(self, device):
        """With the sizes of a GPU, too, which are computed on the CPU."""
        reference = equality.on_the_cpu(Setting(torch.device(device), Kept(), 600.0), 8)
        buffer = reference.model.rollout_buffer
        reference.close()
        shape = -1, buffer.chunk, buffer.num_rows
        assert (buffer.chunk, buffer.num_rows) == ((4, 20) if device == "cpu" else (16, 80))
        assert buffer.episode_starts.view(shape)[:, 1:].any(1).any(1).all()
        assert (~buffer.actor_mask).view(shape).any(1).any(1).all()
        seen = buffer.observations[..., STREAMS["self"].part][..., Self.ALIVE]
        assert torch.equal(seen > 0.5, buffer.actor_mask)

    def test_of_recorded_losses_the_last_gradient_is_compared(self):
        reference = equality.on_the_cpu(small(), 8)
        expected = equality.results(reference.model, None)
        calls = []

        def compute(policy, *arguments):
            calls.append(add_gradients(policy, *arguments))
            for parameter in policy.parameters():
                if parameter.grad is not None:
                    parameter.grad *= len(calls)
            return calls[-1]

        reference.model.update.add_gradients = compute
        found = equality.results(reference.model, None)
        reference.close()
        assert (len(calls), list(found)) == (3, ["gradient"])
        torch.testing.assert_close(found["gradient"], 3 * expected["gradient"])

    def test_a_difference_is_noticed(self):
        reference = equality.on_the_cpu(small(), 8)
        expected = equality.results(reference.model, None)
        twin = equality.copied(reference.model, CPU, {"dense": True})
        with torch.no_grad():
            twin.policy.value_net.bias += 0.5
        found = equality.results(twin, None)
        torch.testing.assert_close(found["value"], expected["value"] + 0.5)
        torch.testing.assert_close(found["log-probability"], expected["log-probability"], rtol=1e-4, atol=1e-4)
        assert float((found["gradient"] - expected["gradient"]).norm()) > 0.1

    def test_the_parts_of_an_iteration_are_all_of_it(self):
        numbers = speed.measure(small(), "skirmish", 2, 8)
        shares = {name: numbers[f"{name}, %"] for name in speed.PARTS}
        assert sum(shares.values()) == pytest.approx(100.0)
        assert min(shares.values()) > 0.0
        assert numbers["samples/s"] == pytest.approx(80 / (numbers["collecting, s"] + numbers["update, s"]))

    @pytest.mark.slow
    @pytest.mark.parametrize("part", [part for part in PARTS if part != "equality"])
    def test_every_part_runs_and_says_that_nothing_was_measured(self, part, tmp_path, capsys):
        assert command.run(part, CPU, tmp_path / "gpu.json") == 0
        assert command.UNMEASURED in capsys.readouterr().out
        (run,) = read(tmp_path / "gpu.json")
        assert (run.part, run.measured, run.machine["gpu"]) == (part, False, None)
        assert run.entries and all(entry.numbers for entry in run.entries)
        assert last_of_each([run]) == {}

    def test_small_sizes_first(self):
        assert products("ab", (1, 2)) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
        assert products((1, 2, 3), (1, 2))[0] == (1, 1)
        assert products((1, 2, 3), (1, 2))[-1] == (3, 2)

    def test_times_of_streams_that_overlap_count_once(self):
        assert speed.union([(5.0, 6.0), (0.0, 2.0), (1.0, 3.0), (1.5, 2.0)]) == 4.0

    def test_reports_of_pytest_are_counted(self):
        report = ET.fromstring(
            '<testsuites><testsuite><testcase classname="a" name="one"/><testcase classname="a" name="two">'
            '<failure message="it broke&#10;here">x</failure></testcase><testcase classname="a" name="three">'
            "<skipped/></testcase></testsuite></testsuites>"
        )
        assert cuda_tests.entries("all tests", report) == [
            Entry("all tests", {"passed": 1, "failed": 1, "skipped": 1}),
            Entry("a.two", {}, "it broke"),
        ]

    @pytest.mark.parametrize(("visible", "seen"), [(None, "1"), ("", "1"), ("4,7", "7"), ("GPU-a,GPU-b", "GPU-b")])
    def test_a_run_sees_the_gpu_that_is_measured(self, visible, seen, monkeypatch):
        monkeypatch.delenv(processes.VISIBLE, raising=False)
        if visible is not None:
            monkeypatch.setenv(processes.VISIBLE, visible)
        assert processes.environment(1)[processes.VISIBLE] == seen
        assert processes.environment(None) == dict(os.environ)

    def test_the_files_with_tests_of_gpus_are_found(self):
        found = cuda_tests.files()
        assert [file.name for file in found] == [
            "test_policy_batch.py", "test_pool.py", "test_distributions.py", "test_cuda.py", "test_cuda_graphs.py",
            "test_processes.py",
        ]  # fmt: skip

    def test_a_run_without_metrics_has_no_curve_and_no_rate(self, tmp_path):
        assert learning.curve(tmp_path / "none") == processes.rate(tmp_path / "none") == {}

    def test_the_first_iteration_does_not_count(self, tmp_path):
        """Its update took 10 s, all others and all rollouts half a second each. Lines are written before updates."""
        times = [0.5, 11.0, 12.0, 13.0]
        lines = [{"time/total_timesteps": 1000 * n, "time/fps": 1000 * n / time} for n, time in enumerate(times, 1)]
        lines.append({"time/total_timesteps": 4000})  # of an evaluation
        (tmp_path / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        assert processes.rate(tmp_path) == pytest.approx({"decisions/s": 1000.0, "iterations": 2})


class TestCases:
    def test_failures_are_kept_and_the_rest_goes_on(self):
        def fails():
            raise torch.OutOfMemoryError("no\nmemory")

        made = small()
        made.cases({"one": fails, "two": lambda: {"x": 1.0}})
        assert [(entry.name, entry.error) for entry in made.keep] == [("one", "OutOfMemoryError: no"), ("two", "")]

    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_numbers_that_are_not_finite_are_an_error(self, value):
        made = small()
        made.cases({"one": lambda: {"x": value, "z": 1.0}, "two": lambda: {"x": 1.0}})
        assert [(entry.name, entry.error) for entry in made.keep] == [("one", "not finite: x"), ("two", "")]
        assert list(made.keep[0].numbers) == ["took, s"]

    def test_an_error_without_a_text_is_kept(self):
        def fails():
            raise RuntimeError

        made = small()
        made.cases({"one": fails, "two": lambda: {"x": 1.0}})
        assert [entry.error for entry in made.keep] == ["RuntimeError: no message", ""]

    def test_nothing_begins_near_the_end_of_the_time(self):
        made = small(seconds=setting.GRACE)
        made.cases({"one": lambda: {"x": 1.0}})
        assert [(entry.numbers, entry.error) for entry in made.keep] == [({}, "not begun: the time was up")]

    def test_a_case_that_takes_too_long_is_stopped(self, monkeypatch):
        monkeypatch.setattr(setting, "GRACE", 0.05)
        made = small(seconds=0.1)
        made.cases({"one": lambda: time.sleep(20)})
        assert made.keep[0].error == "RuntimeError: stopped: it took too long"

    def test_a_mistake_in_the_benchmark_is_not_hidden(self):
        with pytest.raises(KeyError):
            small().cases({"one": lambda: {}["x"]})

    def test_all_parts_fit_into_24_minutes(self):
        set_up = 15.0  # imports
        limits = [seconds + set_up for _, seconds in command.MEASURE.values()]
        assert max(limits) <= 8 * 60
        assert sum(limits) <= 24 * 60
        assert command.MEASURE["learning"][1] >= 60 * learning.MINUTES + 30  # maps are made first


class TestFile:
    def test_entries_are_appended_as_they_come(self, tmp_path):
        file, machine = tmp_path / "gpu.json", {"gpu": None, "date": "1"}
        append(file, Run("speed", False, machine, []))
        append(file, Run("speed", False, machine, [Entry("one", {"x": 1.0})]))
        append(file, Run("memory", True, machine, [Entry("two", {"y": [[1, 2.0]]}, "")]))
        append(file, Run("speed", True, {"gpu": "g", "date": "2"}, [Entry("three", {"x": 2})]))
        append(file, Run("speed", True, {"gpu": "g", "date": "3"}, [Entry("three", {"x": 3})]))
        runs = read(file)
        assert [(run.part, len(run.entries)) for run in runs] == [
            ("speed", 1),
            ("memory", 1),
            ("speed", 1),
            ("speed", 1),
        ]
        assert {part: run.machine["date"] for part, run in last_of_each(runs).items()} == {"memory": "1", "speed": "3"}

    @pytest.mark.parametrize(
        ("change", "match"),
        [
            ({"part": "games"}, "part: expected one of tests, equality"),
            ({"measured": 1}, "measured: expected a boolean, got 1"),
            ({"entries": [{"name": "a", "numbers": {"x": "1"}, "error": ""}]}, "'x': expected finite numbers, got '1'"),
            ({"entries": [{"name": "a", "numbers": {"x": [[1, True]]}, "error": ""}]}, "expected finite numbers"),
            ({"entries": [{"name": "a"}]}, "numbers"),
        ],
    )
    def test_other_files_are_refused(self, tmp_path, change, match):
        run = {"part": "speed", "measured": True, "machine": {}, "entries": []}
        (tmp_path / "gpu.json").write_text(json.dumps({"schema": 1, "runs": [run | change]}))
        with pytest.raises(ValueError, match=match) as caught:
            read(tmp_path / "gpu.json")
        assert "gpu.json holds no results of benchmarks.gpu" in str(caught.value)

    def test_a_file_that_holds_something_else_is_left_alone(self, tmp_path, capsys):
        file = tmp_path / "mine.json"
        file.write_text("{}")
        assert command.main(["memory", "--device", "cpu", "--out", str(file)]) == 2
        assert "holds no results of benchmarks.gpu" in capsys.readouterr().err
        assert file.read_text() == "{}"


class TestPage:
    def test_the_page_is_made_from_the_published_file(self):
        runs = read(page.PUBLISHED) if page.PUBLISHED.exists() else []
        text = page.PAGE.read_text(encoding="utf-8")
        assert page.filled_page(text, runs) == text
        assert all(f"<!-- gpu: {part} -->" in text for part in PARTS)

    def test_measured_runs_are_shown_and_others_are_not(self):
        text = "a\n<!-- gpu: speed -->\nold\n<!-- end -->\nb\n<!-- gpu: memory -->\n<!-- end -->\n"
        entries = [
            Entry("512 battles", {"samples/s": 12_345.0, "curve": [[1.0, 2.0]]}),
            Entry("<b>|", {}, "no `memory`"),
        ]
        runs = [Run("speed", True, MACHINE, entries), Run("memory", False, MACHINE, [Entry("x", {"y": 1.0})])]
        filled = page.filled_page(text, runs)
        assert "| 512 battles | 12,300 |" in filled
        assert "-  b  : no  memory" in filled
        assert "curve" not in filled and "old" not in filled and "<b>" not in filled
        assert "H  100  (80.0 GiB), one, 16 cores" in filled
        assert filled.count(page.UNTESTED) == 1

    def test_a_mark_of_another_part_is_refused(self):
        with pytest.raises(ValueError, match="expected a mark of tests, equality"):
            page.filled_page("<!-- gpu: games -->\n<!-- end -->", [])
