import json
import subprocess
import sys

import pytest

from echelon_env.evaluate import validation_seed
from echelon_train.config.files import load_run_config
from echelon_train.config.train import TrainConfig
from echelon_train.errors import RunFolderError
from echelon_train.runs import folder as module
from echelon_train.runs.folder import (
    METRICS_FILE,
    locked,
    read_metrics,
    read_run_config,
    record_resume,
    rewind_metrics,
    run_folder,
)

CONFIG = load_run_config("quickstart", {"seed": "5"})


def document(path):
    return json.loads((path / "run.json").read_text())


def write_lines(path, *steps, end=""):
    lines = [json.dumps({"time/total_timesteps": each, "train/x": each / 3}) for each in steps]
    (path / METRICS_FILE).write_text("".join(f"{line}\n" for line in lines) + end)


def test_the_run_file_holds_configuration_and_provenance(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["echelon", "train", "--seed", "5"])
    monkeypatch.setattr(module, "git_diff", lambda: b"- old\n+ new\n")
    out = tmp_path / "a" / "run"
    with run_folder(out, CONFIG):
        facts = document(out)
        assert TrainConfig.from_dict(facts["config"]) == CONFIG
        assert facts["seeds"] == {"run": 5, "validation": validation_seed(5)}
        assert facts["command"] == ["echelon", "train", "--seed", "5"]
        assert facts["git_diff"] == {"bytes": 12, "file": "diff.patch"}
        assert (out / "diff.patch").read_bytes() == b"- old\n+ new\n"
        assert facts["packages"]["torch"]
        assert facts["machine"]["cores"] >= 1
        assert facts["started"][:2] == "20"
        assert facts["resumed"] == []


HOLD = """
import sys
from pathlib import Path
from echelon_train.runs.folder import locked
with locked(Path(sys.argv[1])):
    print("in", flush=True)
    sys.stdin.read()
"""


def test_two_processes_do_not_train_in_one_folder_and_a_killed_one_leaves_no_lock(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "in\n"
        with pytest.raises(RunFolderError, match="another process is training") as caught, locked(tmp_path):
            pass
        assert str(tmp_path) in str(caught.value)
    finally:
        holder.kill()
        holder.communicate()
    with locked(tmp_path), pytest.raises(RunFolderError), locked(tmp_path):
        pass
    with locked(tmp_path):
        pass


def test_a_file_system_without_locks_is_accepted(tmp_path, monkeypatch):
    def refuse(*args):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(module.fcntl, "flock", refuse)
    with locked(tmp_path), locked(tmp_path):
        pass


def test_a_folder_that_another_run_has_taken_meanwhile_is_left_alone(tmp_path, monkeypatch):
    stock = module.locked

    def late(path):
        (path / "run.json").write_text("theirs")
        return stock(path)

    monkeypatch.setattr(module, "locked", late)
    with pytest.raises(RunFolderError, match="never overwritten"), run_folder(tmp_path / "run", CONFIG):
        pass
    assert (tmp_path / "run" / "run.json").read_text() == "theirs"


def test_a_resume_is_recorded_beside_what_was_there(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "git_diff", lambda: b"one")
    with run_folder(tmp_path, CONFIG):
        first = document(tmp_path)
        assert read_run_config(tmp_path) == CONFIG
        longer = load_run_config("quickstart", {"seed": "5", "steps": "5_000_000"})
        monkeypatch.setattr(module, "git_diff", lambda: b"two")
        record_resume(tmp_path, longer, 4096)
        record_resume(tmp_path, longer, 8192)
        assert read_run_config(tmp_path) == longer
    facts = document(tmp_path)
    assert facts.keys() == first.keys()
    assert facts["started"] == first["started"]
    assert [each["steps"] for each in facts["resumed"]] == [4096, 8192]
    assert facts["resumed"][0]["git_diff"]["file"] == "diff-2.patch"
    assert (tmp_path / "diff.patch").read_bytes() == b"one"
    assert (tmp_path / "diff-2.patch").read_bytes() == b"two"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "is no training run: it has no run.json"),
        ("{", "expected JSON"),
        ("[]", "expected an object, got list"),
        ("{}", "version None of the format, this release reads 1: a release before 0.3 made it"),
        ('{"version": 1}', "keys are missing: started, "),
        ('{"version": 1, "config": 3}', "'config': expected a mapping, got 3"),
        ('{"version": 1, "git_commit": 3, "more": 1}', "unknown config key 'more'"),
    ],
)
def test_a_folder_that_is_no_run_is_refused_with_the_reason(tmp_path, text, message):
    if text is not None:
        (tmp_path / "run.json").write_text(text)
    with pytest.raises(RunFolderError, match=message):
        read_run_config(tmp_path)


def test_metrics_go_back_to_a_checkpoint(tmp_path, monkeypatch):
    rewind_metrics(tmp_path, 0)  # a run that was killed before its first line
    assert not (tmp_path / METRICS_FILE).exists()
    write_lines(tmp_path, 100, 200, 200, 300, end='{"time/total_times')
    before = read_metrics(tmp_path)
    assert [line["time/total_timesteps"] for line in before] == [100, 200, 200, 300]
    with monkeypatch.context() as patch:
        patch.setattr("echelon_train.runs.folder.MAX_METRICS_BYTES", 10)  # a long run is resumed, too
        rewind_metrics(tmp_path, 200)
    assert read_metrics(tmp_path) == before[:2]  # the second line of a finished run is written again
    assert (tmp_path / METRICS_FILE).read_text().endswith("}\n")
    rewind_metrics(tmp_path, 0)
    assert read_metrics(tmp_path) == []


@pytest.mark.parametrize("line", [b"no", b"\xff\xfe", b"[" * 5_000, b'{"x": ' + b"3" * 5_000 + b"}"])
def test_metrics_that_are_something_else_are_refused_with_the_line(tmp_path, line):
    write_lines(tmp_path, 100)
    with (tmp_path / METRICS_FILE).open("ab") as file:
        file.write(line + b"\n")
    with pytest.raises(RunFolderError, match=r"metrics\.jsonl:2: expected a line of JSON"):
        read_metrics(tmp_path)
