"""Files of strangers that the trainer reads: regular ones only, and no JSON with a key twice."""

import os

import pytest

from echelon_env.config.schema import ConfigError
from echelon_train.config.files import load_run_config
from echelon_train.errors import TrainError
from echelon_train.league.errors import DamagedLeagueError, LeagueError
from echelon_train.league.playing.executors import Executor
from echelon_train.league.store.database import parse
from echelon_train.league.store.periods import LeagueSettings
from echelon_train.league.store.registry import League
from echelon_train.ppo.algorithm import EchelonRecurrentPPO
from echelon_train.report.sources import read_groups
from echelon_train.runs.experiment import resume_seeds
from echelon_train.runs.folder import LOCK_FILE, locked, read_metrics, read_run_config
from echelon_train.runs.loggers import open_logger
from echelon_train.self_play.files import read_member, read_pool
from echelon_train.supervisor.children import Child, last_line
from echelon_train.supervisor.metrics import Progress, read_progress
from echelon_train.supervisor.plan import LeaguePlan, read_plan, runs_folder
from echelon_train.supervisor.supervisor import LOG_FILE, Supervisor
from storage.test_reading import DEVICE, TWICE

JSON_READERS = {
    "metrics": ("metrics.jsonl", lambda path: read_metrics(path.parent)),
    "run": ("run.json", lambda path: read_run_config(path.parent)),
    "run in a report": ("run.json", lambda path: read_groups([path.parent])),
    "seeds": ("seeds.json", lambda path: resume_seeds(path.parent)),
    "past policies": ("pool.json", lambda path: read_pool(path.parent)),
    "plan": ("runs/plan.json", lambda path: read_plan(path.parent.parent)),
}
OTHERS = {
    "run config": ("config.toml", load_run_config),
    "past policy": ("1.safetensors", lambda path: read_member(path.parent, "1", None)),
    "model": ("model.safetensors", EchelonRecurrentPPO.load),
}


@pytest.mark.parametrize(("name", "read"), (JSON_READERS | OTHERS).values(), ids=JSON_READERS | OTHERS)
def test_only_regular_files_are_read(tmp_path, name, read):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).symlink_to(DEVICE)
    with pytest.raises((ConfigError, TrainError), match=rf"{name}.*: .*not a regular file"):
        read(tmp_path / name)


def test_what_shows_the_progress_of_a_learner_reads_only_regular_files(tmp_path):
    for name in ("metrics.jsonl", "run.log"):
        (tmp_path / name).symlink_to("/dev/zero")
    assert read_progress(tmp_path) == Progress()
    assert last_line(tmp_path / "run.log") == ""


def test_a_pipe_in_place_of_a_lock_is_refused_without_waiting(tmp_path):
    with locked(tmp_path):
        assert not (tmp_path / LOCK_FILE).stat().st_mode & 0o111, "a new file is not executable"
    (tmp_path / LOCK_FILE).unlink()
    os.mkfifo(tmp_path / LOCK_FILE)
    with pytest.raises(OSError, match=LOCK_FILE), locked(tmp_path):
        pass


@pytest.mark.parametrize("end", ["journal", "wal", "shm"])
def test_a_pipe_beside_the_database_of_a_league_is_refused_without_waiting(tmp_path, end):
    League.create(tmp_path / "league", LeagueSettings())
    os.mkfifo(tmp_path / "league" / f"league.db-{end}")
    with pytest.raises(LeagueError, match=f"league.db-{end}: not a regular file"):
        League.open(tmp_path / "league")


@pytest.mark.parametrize(("name", "read"), JSON_READERS.values(), ids=JSON_READERS)
def test_a_key_that_is_there_twice_is_refused(tmp_path, name, read):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(TWICE + b"\n")
    with pytest.raises((ConfigError, TrainError), match=rf"{name}.*: .*expected different keys .* got 'format' twice"):
        read(tmp_path / name)


def test_a_row_of_a_league_with_a_key_twice_is_refused():
    with pytest.raises(DamagedLeagueError, match="expected different keys"):
        parse(TWICE.decode(), dict, "origin")
    with pytest.raises(DamagedLeagueError, match="expected JSON, got None"):
        parse(None, dict, "origin")


WRITERS = {
    "metrics": ("metrics.jsonl", lambda path: open_logger(path.parent)),
    "log of a learner": ("run.log", lambda path: Child(["--version"], path)),
}


@pytest.mark.parametrize(("name", "write"), WRITERS.values(), ids=WRITERS)
def test_a_pipe_in_place_of_what_is_appended_to_is_refused_without_waiting(tmp_path, name, write):
    os.mkfifo(tmp_path / name)
    with pytest.raises(OSError, match=name):
        write(tmp_path / name)


def test_a_pipe_in_place_of_the_log_of_a_league_run_is_refused_without_waiting(tmp_path):
    league = League.create(tmp_path / "league")
    runs_folder(league.path).mkdir()
    os.mkfifo(runs_folder(league.path) / LOG_FILE)
    run = Supervisor(league, LeaguePlan(config="quickstart", settings=("battles=2",)), Executor())
    with pytest.raises(OSError, match=LOG_FILE):
        run.run(lambda status: None)
