"""The benchmark's parts, on made-up numbers and in tiny runs; how fast anything is, is not tested."""

import dataclasses
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))  # the benchmarks are no installed package

from benchmarks.presets import COLUMNS, QUICK, presets  # noqa: E402
from benchmarks.recording import config_for, play, record  # noqa: E402
from benchmarks.resets import resets  # noqa: E402
from benchmarks.results import read_results  # noqa: E402
from benchmarks.scaling import scaling, thread_counts  # noqa: E402
from benchmarks.startup import startup  # noqa: E402
from benchmarks.tables import WIDTH, Table, as_markdown, as_text, by_pairs, number  # noqa: E402
from benchmarks.timing import Effort, interleaved, spread  # noqa: E402
from benchmarks.training import training  # noqa: E402

from benchmarks import __main__ as command  # noqa: E402
from benchmarks import apis, regression  # noqa: E402
from benchmarks import training as trainers  # noqa: E402
from echelon_env import BattleEngine, MapPool, make_config, scenarios  # noqa: E402
from echelon_train.ppo.gae import advantages_and_returns  # noqa: E402
from echelon_train.ppo.losses import losses  # noqa: E402

TINY = Effort(quick=True, rounds=1, decisions=7, peers=Path("nowhere"))


def check_tables(tables):
    """Tables with numbers that are at least zero, which JSON can hold and which fit the terminal."""
    assert len({table.name for table in tables}) == len(tables) > 0
    for table in tables:
        assert Table.from_dict(json.loads(json.dumps(table.to_dict(), allow_nan=False))) == table
        assert all(cell is None or cell >= 0 for cells in table.rows.values() for cell in cells)
        assert max(map(len, as_text(table).splitlines())) <= WIDTH


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

    def test_every_api_has_what_it_plays(self, recording):
        one = recording.resized(1)
        for player in ("novices", "random"):
            played = {api: chosen for api, (chosen, _) in apis.replays(recording, one, player).items()}
            assert {api for api, chosen in played.items() if chosen is one} == {
                apis.SINGLE_ENV, apis.PARALLEL_ENV, apis.AEC_ENV,
            }  # fmt: skip

    def test_random_play_restarts(self):
        config = config_for("random", make_config("duel"), 12)
        recording = record(config, "random", 12, MapPool.generate(config, 2), battles=3)
        assert recording.begins.sum(axis=0).tolist() == [3, 3, 3]

    def test_random_play_without_restarts_is_refused(self):
        config = make_config("duel")
        with pytest.raises(ValueError, match="expected battles of less than 12 decisions"):
            record(config, "random", 12, MapPool.generate(config, 2), battles=3)

    @pytest.mark.parametrize("make", [apis.engine_replay, apis.batch_replay, apis.vector_replay, *SINGLE])
    def test_other_actions_are_noticed(self, recording, make):
        one = recording.resized(1) if make in SINGLE else recording
        other = dataclasses.replace(one, actions=np.zeros_like(one.actions))
        with pytest.raises(RuntimeError, match="another way"):
            make(other)()

    @pytest.mark.parametrize("battles", [2, 7])
    def test_other_numbers_of_places_repeat_the_same_battles(self, recording, battles):
        resized = recording.resized(battles)
        engine = BattleEngine(resized.config, battles, maps=resized.maps)
        play(engine, resized)
        resized.check_end(engine)
        np.testing.assert_array_equal(resized.live, recording.live[:, np.arange(battles) % 3])


class TestSections:
    @pytest.mark.long
    @pytest.mark.parametrize("section", [apis.apis, presets, resets, scaling, startup, training])
    def test_tables(self, section):
        check_tables(section(TINY))

    @pytest.mark.parametrize("quick", [False, True])
    def test_scenarios_are_measured_through_every_api(self, monkeypatch, quick):
        monkeypatch.setattr("benchmarks.presets.MAPS", 1)
        (table,) = presets(dataclasses.replace(TINY, quick=quick, decisions=1))
        assert list(table.rows) == list(QUICK if quick else scenarios())
        assert table.columns == (*COLUMNS, "living")
        assert all(cell > 0 for cells in table.rows.values() for cell in cells)
        assert [table.cell(name, "living") for name in QUICK] == [scenarios()[name].config.num_mechs for name in QUICK]

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["phases", "floors"])
    def test_tables_of_what_compiles_kernels_of_its_own(self, name):
        check_tables(command.SECTIONS[name](TINY))

    def test_threads_end_with_all_cores(self, monkeypatch):
        monkeypatch.setattr("benchmarks.scaling.cores", lambda: 6)
        assert thread_counts() == (1, 2, 4, 6)


@pytest.fixture(scope="module")
def rollout():
    """16 decisions in which every battle ends once."""
    config = trainers._config(quick=True)
    return trainers.record(dataclasses.replace(config, battle=dataclasses.replace(config.battle, max_steps=14)), 6)


class TestTraining:
    def test_a_rollout_can_be_played_again(self, rollout):
        replay = trainers.Replay(rollout)
        played = []
        for _ in range(2):
            seen = [replay.rewind()]
            for noise in range(len(rollout.actions)):
                observations, _, dones, _ = replay.step(np.full((replay.num_envs, 30), noise, np.float32))
                seen += [observations, dones]
            played.append(seen)
        assert rollout.ends == sum(dones.sum() for dones in played[0][2::2]) / 5 == 4
        assert all(np.array_equal(first, second) for first, second in zip(*played, strict=True))

    def test_losses_that_differ_from_those_of_stock_are_noticed(self, rollout, monkeypatch):
        trainers.check_losses(rollout)

        def wrong(policy, batch, *args):
            never = batch.sequences._replace(starts=torch.zeros_like(batch.sequences.starts))
            states = tuple(state + 0.5 for state in batch.states)  # they are zero at the beginning
            return losses(policy, batch._replace(sequences=never, states=states), *args)

        monkeypatch.setattr("echelon_train.ppo.losses.losses", wrong)
        with pytest.raises(RuntimeError, match="losses of Echelon and sb3-contrib differ"):
            trainers.check_losses(rollout)

    def test_the_cleanrl_style_algorithm_judges_its_rollout_as_when_it_was_collected(self, rollout):
        learner = trainers.CleanRL(rollout)
        learner.rewind()
        learner.collect()
        flat = (each.flatten(0, 1) for each in (learner.observations, learner.actions))
        values, log_probs, _ = learner.agent.evaluate_actions(*flat, learner.initial_state, learner.dones.flatten())
        assert learner.dones.sum() > 0
        torch.testing.assert_close(log_probs, learner.log_probs.flatten(), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(values.flatten(), learner.values.flatten(), rtol=1e-4, atol=1e-4)
        before = [parameter.detach().clone() for parameter in learner.agent.parameters()]
        learner.train()
        changed = [not torch.equal(*pair) for pair in zip(before, learner.agent.parameters(), strict=True)]
        assert all(changed)

    def test_the_cleanrl_style_algorithm_estimates_advantages_as_ours(self, rollout):
        learner = trainers.CleanRL(rollout)
        learner.rewind()
        with torch.no_grad():  # a critic that begins at zero would leave nothing to discount
            learner.agent.value_net.weight.normal_()
        learner.collect()
        last = learner.agent.predict_values(learner.next_observation, learner.state.vf, learner.next_done).flatten()
        ends = torch.cat([learner.dones[1:], learner.next_done[None]]) > 0
        config = rollout.config.ppo
        expected, _ = advantages_and_returns(
            learner.rewards, learner.values, last.detach(), ends, torch.zeros_like(learner.rewards),
            config.gamma.start, config.gae_lambda,
        )  # fmt: skip
        torch.testing.assert_close(learner.advantages, expected, rtol=1e-4, atol=1e-5)


BASELINE = {"one": 2.0, "two": 4.0}


class TestRegression:
    def verdicts(self, **ratios):
        table, good = regression.compare(ratios, BASELINE)
        return {name: table.cell(name, regression.VERDICT) for name in table.rows}, good

    @pytest.mark.parametrize(
        ("two", "verdict"), [(5.99, "same"), (6.0, "SLOWER"), (2.7, "same"), (2.6, "faster"), (4.0, "same")]
    )
    def test_half_as_much_again_is_slower(self, two, verdict):
        assert self.verdicts(one=[1.9, 2.0, 2.1], two=[two]) == ({"one": "same", "two": verdict}, verdict != "SLOWER")

    def test_the_median_decides(self):
        assert self.verdicts(one=[2.0, 9.0, 9.0], two=[4.0]) == ({"one": "SLOWER", "two": "same"}, False)
        assert self.verdicts(one=[2.0, 2.0, 9.0], two=[4.0]) == ({"one": "same", "two": "same"}, True)

    def test_a_baseline_of_other_measurements_is_refused(self):
        with pytest.raises(ValueError, match=r"expected ratios of \['one'\], got \['one', 'two'\]"):
            regression.compare({"one": [1.0]}, BASELINE)

    @pytest.mark.parametrize(
        ("baselines", "message"),
        [
            *((f'{{"p": {{"commit": "c", "ratios": {{"one": {ratio}}}}}}}', "one: expected a finite ratio above 0")
              for ratio in ("NaN", "Infinity", "0", "-1")),
            ('{"p": {"commit": "c", "ratios": {"one": "x"}}}', "is no baseline"), ("{", "is no baseline"),
            ("[]", "is no baseline"),
        ],
    )  # fmt: skip
    def test_what_nothing_can_be_compared_with_is_refused(self, tmp_path, baselines, message):
        (tmp_path / "baseline.json").write_text(f'{{"schema": 2, "baselines": {baselines}}}')
        with pytest.raises(ValueError, match=message):
            regression.read_baselines(tmp_path / "baseline.json")

    def test_another_schema_is_refused(self, tmp_path):
        (tmp_path / "baseline.json").write_text('{"schema": 1}')
        with pytest.raises(ValueError, match="expected schema 2, got 1"):
            regression.read_baselines(tmp_path / "baseline.json")

    def test_the_kept_baselines_are_of_what_is_measured(self):
        for baseline in regression.read_baselines(regression.BASELINE).values():
            assert set(baseline["ratios"]) == set(regression.measurements(2))

    def test_ratios_are_of_every_measurement_and_round(self, monkeypatch):
        monkeypatch.setattr(regression, "measurements", lambda decisions: {"one": lambda: 0.5, "two": lambda: 0.25})
        ratios = regression.measure(rounds=2, decisions=1)
        assert {name: len(values) for name, values in ratios.items()} == {"one": 2, "two": 2}
        assert all(value > 0 for values in ratios.values() for value in values)


class TestCommand:
    @pytest.fixture
    def section(self, monkeypatch):
        tables = {name: Table(name, "Costs", "ms", ("x",), {"a": (1.0,)}) for name in ("costs", "kept")}
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

    @pytest.mark.parametrize(
        ("error", "status", "said"),
        [
            (RuntimeError("fell over"), 2, "error: fell over"),
            (OSError("no room"), 2, "error: no room"),
            (KeyboardInterrupt(), 130, "interrupted"),
        ],
    )
    def test_a_failure_keeps_what_was_measured(self, monkeypatch, tmp_path, capsys, section, error, status, said):
        def fail(effort):
            raise error

        monkeypatch.setitem(command.SECTIONS, "startup", fail)
        assert command.main(["--sections", "resets", "startup", "--out", str(tmp_path / "out")]) == status
        assert read_results(tmp_path / "out" / "results.json").sections == {"resets": section}
        assert command.main(["--sections", "startup", "--out", str(tmp_path / "none")]) == status
        assert not (tmp_path / "none").exists()
        assert capsys.readouterr().err.splitlines()[-1] == said

    def test_a_folder_that_cannot_be_written_to_is_named(self, monkeypatch, tmp_path, capsys, section):
        monkeypatch.setattr("os.access", lambda *_: False)  # whoever runs the tests may write everywhere
        assert command.main(["--sections", "resets", "--out", str(tmp_path / "out")]) == 2
        assert f"is not writable, nothing can be written into it: '{tmp_path}'" in capsys.readouterr().err

    @pytest.mark.parametrize("mode", ["--check", "--update-baseline"])
    @pytest.mark.parametrize("flag", [["--quick"], ["--sections", "apis"], ["--out", "x"], ["--peers", "x"]])
    def test_flags_that_would_be_ignored_are_refused(self, capsys, mode, flag):
        with pytest.raises(SystemExit):
            command.main([mode, *flag])
        assert f"{flag[0]}: not allowed with" in capsys.readouterr().err

    @pytest.mark.parametrize(("factor", "status"), [(1.0, 0), (2.0, 1)])
    def test_the_check_says_what_is_slower(self, monkeypatch, capsys, factor, status):
        name, kept = next(iter(regression.read_baselines(regression.BASELINE).items()))
        found = {name: [factor * one] for name, one in kept["ratios"].items()}
        monkeypatch.setattr(regression, "processor", lambda: name)
        monkeypatch.setattr(regression, "measure", lambda *_: found)
        assert command.main(["--check"]) == status
        assert ("SLOWER" in capsys.readouterr().out) == bool(status)

    def test_another_processor_is_not_compared(self, monkeypatch, capsys):
        monkeypatch.setattr(regression, "processor", lambda: "unknown")
        assert command.main(["--check"]) == 0
        assert capsys.readouterr().out.startswith("No check: there is no baseline of this processor")

    def test_a_missing_baseline_is_an_error(self, monkeypatch, tmp_path, capsys):
        monkeypatch.setattr(regression, "BASELINE", tmp_path / "none.json")
        assert command.main(["--check"]) == 2
        assert "--update-baseline" in capsys.readouterr().err

    def test_a_baseline_is_kept_beside_those_of_other_processors(self, monkeypatch, tmp_path):
        monkeypatch.setattr(regression, "BASELINE", tmp_path / "baseline.json")
        for processor, ratio in (("a", 1.0), ("b", 2.0), ("b", 3.0)):
            monkeypatch.setattr(regression, "processor", lambda name=processor: name)
            monkeypatch.setattr(regression, "measure", lambda *_, value=ratio: {"one": [0.5, value, 9.0]})
            assert command.main(["--update-baseline"]) == 0
        baselines = regression.read_baselines(tmp_path / "baseline.json")
        assert {name: baseline["ratios"] for name, baseline in baselines.items()} == {
            "a": {"one": 1.0},
            "b": {"one": 3.0},
        }
