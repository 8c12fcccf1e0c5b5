"""Tasks of a league run: their commands, and when they start again."""

import json

import pytest

from echelon_train.errors import RunFolderError
from echelon_train.runs.folder import locked
from echelon_train.supervisor import tasks
from echelon_train.supervisor.plan import LeaguePlan
from echelon_train.supervisor.tasks import ATTEMPTS, ENDLESS, FIRST_PAUSE, LAST_PAUSE, LearnerTask


@pytest.fixture
def clock(monkeypatch):
    """Seconds that a test sets."""
    now = [0.0]
    monkeypatch.setattr(tasks.time, "monotonic", lambda: now[0])
    return now


def learner(league, name="main", kinds=frozenset({"scripted"}), **plan):
    plan = LeaguePlan(main=2, **plan)
    agent = next(agent for agent in plan.agents if agent.name == name)
    return LearnerTask(league, plan, agent, lambda: "main" in kinds)


def checkpoint(task, name):
    task.folder.mkdir(parents=True, exist_ok=True)
    (task.folder / "last.json").write_text(json.dumps({"checkpoint": name}))


def test_a_learner_is_trained_by_the_command_line(tmp_path):
    plan = {"start": "start", "seed": 5, "settings": ("battles=8",), "steps": 100}
    task, exploiter = learner(tmp_path, "main", **plan), learner(tmp_path, "exploiter", **plan)
    for each, role, start, seed, steps in (
        (task, "main", ["--init", f"{tmp_path}/start"], "5", "100"),
        (exploiter, "exploiter", [], "31", str(ENDLESS)),
    ):
        assert each.command() == [
            "train", "league", "--league", str(tmp_path), "--role", role, "--agent", role, *start,
            "--seed", seed, "--set", "battles=8", "--steps", steps, "--out", str(each.folder),
        ]  # fmt: skip


def test_a_learner_with_a_run_is_resumed(tmp_path):
    task = learner(tmp_path, steps=100)
    task.folder.mkdir(parents=True)
    (task.folder / "run.json").write_text("{}")
    assert task.command() == ["train", "--resume", str(task.folder), "--league", str(tmp_path), "--steps", "100"]


def test_a_dead_learner_starts_again_after_a_pause(tmp_path, clock, children):
    lines, task = [], learner(tmp_path)
    task.update(lines.append)
    children[0].code = -9
    task.update(lines.append)
    assert task.state == "restarting" and lines == [f"main: killed by signal 9; it starts again in {FIRST_PAUSE:g} s"]
    clock[0] = FIRST_PAUSE - 0.1
    task.update(lines.append)
    assert len(children) == 1
    clock[0] = FIRST_PAUSE
    task.update(lines.append)
    assert task.state == "running" and len(children) == 2


def die(task, children, clock, lines, last="echelon: it diverged"):
    clock[0] += 10_000.0
    task.update(lines.append)
    children[-1].code, children[-1].last = 2, last
    task.update(lines.append)


def test_a_learner_that_fails_without_progress_is_tried_less_often(tmp_path, clock, children):
    lines, task = [], learner(tmp_path)
    for _ in range(ATTEMPTS):
        assert task.state != "failed"
        die(task, children, clock, lines, "gradients were not finite")
    assert task.state == "failed" and task.note == "gradients were not finite" and not task.over and not task.worked
    assert "failed 5 times without a checkpoint: gradients were not finite; from now on" in lines[-1]
    clock[0] += LAST_PAUSE - 1.0
    task.update(lines.append)
    assert len(children) == ATTEMPTS
    count = len(lines)
    die(task, children, clock, lines, "gradients were not finite")
    assert len(children) == ATTEMPTS + 1 and task.state == "failed" and len(lines) == count
    clock[0] += LAST_PAUSE
    task.update(lines.append)
    checkpoint(task, "1")  # the reason has passed
    children[-1].code = -9
    task.update(lines.append)
    assert task.state == "restarting" and task.worked


def test_a_folder_in_which_another_process_trains_is_left_alone(tmp_path, clock, children):
    task = learner(tmp_path)
    checkpoint(task, "1")
    with locked(task.folder):
        task.update(print)
        assert task.state == "waiting" and "another process" in task.note and not children
        with pytest.raises(RunFolderError), locked(task.folder):
            pass
    task.update(print)
    assert task.state == "running" and not task.note


def test_stopping_does_not_count_as_a_failure(tmp_path, clock, children):
    lines, task = [], learner(tmp_path)
    task.update(lines.append)
    task.stop()
    children[0].code = 130
    task.update(lines.append)
    task.update(lines.append)
    assert not task.alive and children[0].stopped == 1 and len(children) == 1 and not lines
