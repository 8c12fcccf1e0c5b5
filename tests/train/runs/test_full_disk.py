"""A full disk ends a run with a clear error; the checkpoints stay whole, and the run can be resumed from them."""

import errno
import json
import os
import signal

import pytest

from echelon_env.cli import main
from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.runs import loggers, run
from echelon_train.runs.curves import save_run_curves
from echelon_train.runs.folder import RUN_FILE, read_metrics
from echelon_train.runs.training import resume, train
from train.resuming import QUIET, at_step, differences, resumable_run
from train.small import small_evaluation


def fill_the_disk():
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture(autouse=True)
def evaluations(monkeypatch):
    monkeypatch.setattr(run, "evaluate", lambda *args, **kwargs: small_evaluation())


class SmallFile:
    """A file for which there is room for a line and a half."""

    def __init__(self, path):
        self._file, self._left = path.open("a"), 1.5

    def write(self, line):
        self._file.write(line[: int(len(line) * self._left)])
        self._left -= 1.0
        if self._left < 0:
            self._file.flush()
            fill_the_disk()

    def flush(self):
        self._file.flush()

    def close(self):
        self._file.close()


@pytest.mark.long
def test_no_room_for_metrics(tmp_path, monkeypatch):
    whole, full = tmp_path / "whole", tmp_path / "full"
    config = resumable_run(steps=96)
    train(config, whole, console=QUIET)
    with monkeypatch.context() as patch:
        at_step(patch, 1, lambda: signal.raise_signal(signal.SIGINT))
        train(config, full, console=QUIET)
    with monkeypatch.context() as patch:
        patch.setattr(loggers._JSONLines, "__init__", lambda self, path: setattr(self, "file", SmallFile(path)))
        with pytest.raises(OSError, match="No space left") as caught:
            resume(full, console=QUIET)
    assert str(full) in str(caught.value)
    assert not (full / "metrics.jsonl").read_text().endswith("\n"), "the last line is not whole"
    assert len(read_metrics(full)) == 2
    assert resume(full, console=QUIET).steps == 96
    assert differences(whole, full) == []


def no_room_for(patch, name):
    stock = os.fsync

    def fsync(handle):
        if f"/.{name}." in os.readlink(f"/proc/self/fd/{handle}"):
            fill_the_disk()
        stock(handle)

    patch.setattr(os, "fsync", fsync)


def test_no_room_for_a_new_run(tmp_path, monkeypatch, capsys):
    full = tmp_path / "full"
    with monkeypatch.context() as patch:
        no_room_for(patch, RUN_FILE)
        assert main(["train", "--steps", "32", "--out", str(full)]) == 2
    assert capsys.readouterr().err == f"echelon: {full / RUN_FILE}: No space left on device\n"
    assert not full.exists()


@pytest.mark.parametrize("name", [RUN_FILE, "training.safetensors", "last.json"])
def test_no_room_for_a_file_of_a_resumed_run(tmp_path, monkeypatch, name):
    full = tmp_path / "full"
    train(resumable_run(steps=64), full, console=QUIET)
    before = (full / RUN_FILE).read_bytes()
    with monkeypatch.context() as patch:
        no_room_for(patch, name)
        with pytest.raises(OSError, match="No space left") as caught:
            resume(full, steps=96, console=QUIET)
    assert caught.value.filename.startswith(str(full))
    assert ((full / RUN_FILE).read_bytes() == before) == (name == RUN_FILE)
    assert load_checkpoint(full).steps == 64
    assert list(full.rglob(".*")) == []
    assert resume(full, steps=96, console=QUIET).steps == 96
    assert json.loads((full / RUN_FILE).read_text())["resumed"][0]["steps"] == 64


def test_a_picture_that_cannot_be_written_is_no_reason_to_stop(tmp_path, monkeypatch, capsys):
    """Neither in the run nor at its end."""
    drawn = []

    def draw(folder):
        drawn.append(len(read_metrics(folder)))
        if len(drawn) in (2, 4):
            fill_the_disk()
        save_run_curves(folder)

    monkeypatch.setattr(run, "save_run_curves", draw)
    monkeypatch.setattr("echelon_train.runs.run.CURVES_SECONDS", 0.0)
    out = tmp_path / "run"
    assert train(resumable_run(steps=96), out).done
    assert drawn == [0, 1, 2, 4], "in every iteration, of what had been written, and at the end"
    assert capsys.readouterr().out.count("curves.png cannot be drawn: [Errno 28] No space left on device") == 2
    assert (out / "curves.png").exists()
