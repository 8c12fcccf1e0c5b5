import io
from types import SimpleNamespace

import pytest
from rich.console import Console
from stable_baselines3.common.logger import Logger

from echelon_train.runs.callbacks import clock as clocks
from echelon_train.runs.callbacks import progress as module
from echelon_train.runs.callbacks.clock import ClockCallback, ClockState
from echelon_train.runs.callbacks.progress import ProgressCallback

TOTAL = 1_000_000
UPDATE = {
    "train/approx_kl": 0.0112,
    "train/clip_fraction": 0.12,
    "train/entropy_loss": -9.8,
    "train/explained_variance": 0.614,
    "train/learning_rate": 5e-4,
}


class Run:
    """A run that takes a second for 1,000 samples, played by hand in rollouts of 10,000."""

    def __init__(self, console, monkeypatch, start=0, max_minutes=0.0, max_battles=0, battles=0, max_cpu_minutes=0.0):
        self.now = 0.0
        time = SimpleNamespace(monotonic=lambda: self.now, process_time=lambda: 6.0 * self.now)
        monkeypatch.setattr(module, "time", time)
        monkeypatch.setattr(clocks, "time", time)
        self.results = SimpleNamespace(win_rate=None, learner_win_rate=None, mean_return=None)
        self.results.state = SimpleNamespace(num_battles=battles)
        limits = {"max_minutes": max_minutes, "max_cpu_minutes": max_cpu_minutes, "max_battles": max_battles}
        self.clock = ClockCallback(SimpleNamespace(steps=TOTAL, **limits), self.results)
        self.callback = ProgressCallback(TOTAL, self.results, self.clock, console)
        self.logger = Logger(None, [])
        self.model = SimpleNamespace(num_timesteps=start, logger=self.logger, get_env=lambda: None)
        for callback in (self.clock, self.callback):
            callback.init_callback(self.model)
        for callback in (self.clock, self.callback):
            callback.on_training_start({}, {})

    def rollout(self, before=(), after=()):
        """A rollout, with what the logger holds before and what comes until it is written."""
        self.logger.name_to_value.update(before)
        self.callback.on_rollout_start()
        for _ in range(10):
            self.now += 1.0
            self.model.num_timesteps += 1000
            self.results.state.num_battles += 3
            assert self.callback._on_step()
        self.logger.name_to_value.update(after)
        self.clock.on_rollout_end()
        self.callback.on_rollout_end()
        self.logger.dump()


def make_console(terminal, **options):
    return Console(file=io.StringIO(), width=80, force_terminal=terminal, color_system=None, **options)


def panel(run):
    """The current panel, as lines."""
    console = make_console(True)
    console.print(run.callback._panel())
    return console.file.getvalue().splitlines()


@pytest.fixture
def watched(monkeypatch):
    run = Run(make_console(True), monkeypatch)
    yield run
    run.callback.close()


def test_the_panel_shows_the_run_and_its_learning_metrics(watched):
    watched.rollout()
    watched.results.win_rate, watched.results.mean_return = 0.43, 2.1
    for kl in (0.005, 0.02, 0.0112):
        watched.rollout({**UPDATE, "train/approx_kl": kl}, {"eval/win_rate": 0.38})
    lines = panel(watched)
    assert {len(line) for line in lines} == {80}
    text = "\n".join(lines)
    assert "4 %  40k/1M  1,000/s  0:40, 4 CPU min, 16:00 left" in text
    for part in ("win rate", "43 %", "38 %", "2.10", "0.0112", "12.0 %", "9.80", "0.61", "5.0e-04", "▁█▄", "training"):
        assert part in text


def test_several_opponents_have_a_win_rate_each(watched):
    path = "policy:runs/league/members/main-of-yesterday"
    watched.rollout({}, {"opponent/novice/win_rate": 0.97, "curriculum/scenario": "duel[/]open"})
    assert "─ duel[/]open ─" in panel(watched)[0]
    assert "novice" not in "".join(panel(watched)), "of one it is the win rate"
    rates = {"opponent/novice/win_rate": 0.97, f"opponent/{path}/win_rate": 0.5, "opponent/novice/battles": 120.0}
    watched.rollout({}, rates)
    shown = f"v novice 97 %, …{path[-23:]} 50 %"
    assert any(shown in line for line in panel(watched))
    assert {len(line) for line in panel(watched)} == {80}
    assert watched.callback._line().endswith(shown)


def test_the_panel_is_drawn_and_its_last_state_stays(monkeypatch):
    console = make_console(True)
    run = Run(console, monkeypatch)
    run.rollout(UPDATE)
    run.logger.name_to_value.update({**UPDATE, "train/approx_kl": 0.0987})
    run.callback.on_training_end()
    last = console.file.getvalue().rpartition("╭")[2]
    assert "0.0987" in last
    assert "1 %  10k/1M" in last
    run.callback.close()  # again does nothing


def test_elsewhere_it_is_a_line_for_every_hundredth_but_no_more_than_two_a_minute(monkeypatch):
    console = make_console(False)
    run = Run(console, monkeypatch)
    run.results.win_rate, run.results.mean_return = 0.43, 2.1
    for _ in range(12):
        run.rollout(UPDATE, {"eval/win_rate": 0.38})
    run.callback.on_training_end()
    lines = console.file.getvalue().splitlines()
    assert len(lines) == 120 // 30 + 1
    shown = "win 43 %  kl 0.0112  eval 38 %  return 2.10  entropy 9.80  ev 0.61"
    assert lines[1] == f"  6 %  60k/1M  1,000/s  left 15:40  5 CPU min  {shown}"
    assert lines[-1].startswith(" 12 %  120k/1M")


def test_the_share_and_the_time_left_follow_the_budget_that_ends_first(monkeypatch):
    run = Run(make_console(False), monkeypatch, max_minutes=2.0)
    run.clock.restore(ClockState(seconds=30.0, cpu_seconds=60.0))
    for _ in range(3):
        run.rollout()
    assert run.callback._line() == " 50 %  30k/1M  1,000/s  left 1:00  4 CPU min"
    run = Run(make_console(False), monkeypatch, max_cpu_minutes=4.0)  # six seconds of it for each of the clock
    for _ in range(3):
        run.rollout()
        assert not run.clock.is_up()
    assert run.clock.remaining() == pytest.approx(0.25)
    assert run.callback._line() == " 75 %  30k/1M  1,000/s  left 0:10  3 CPU min"
    run.rollout()
    assert run.clock.is_up() and run.clock.remaining() == 0.0


def test_a_process_of_a_notebook_prints_lines(monkeypatch):
    """Jupyter sets FORCE_COLOR, and its cells cannot move the cursor."""
    for name, value in {"TERM": "xterm-color", "FORCE_COLOR": "1", "JPY_PARENT_PID": "7"}.items():
        monkeypatch.setenv(name, value)
    console = make_console(None)
    assert console.is_terminal
    run = Run(console, monkeypatch)
    run.now, run.model.num_timesteps = 60.0, 60_000
    run.rollout()
    assert "\x1b" not in console.file.getvalue() and "6 %" in console.file.getvalue()


def test_with_a_teacher_the_learners_own_win_rate_stands_beside_that_of_both(watched):
    watched.results.win_rate, watched.results.learner_win_rate = 0.85, 0.12
    watched.rollout()
    assert "win rate without the teacher's battles 12 %" in "\n".join(panel(watched))
    line = watched.callback._line()
    assert "win 85 %" in line and "win without teacher 12 %" in line
