import shutil

import pytest

from echelon_env.networks.checkpoint import WEIGHTS_FILE
from echelon_env.networks.weights import CheckpointError
from echelon_train.league.errors import LeagueError
from echelon_train.league.store.policies import find_policy, origin
from train.league.leagues import saved


@pytest.fixture
def checkpoint(league, tmp_path):
    """A checkpoint that has joined the league as the member otter."""
    folder = saved(tmp_path / "checkpoint")
    league.add_checkpoint(folder, "past", "otter")
    return folder


def test_checkpoints_runs_and_members_have_names(league, checkpoint, finished_run, monkeypatch):
    assert find_policy(checkpoint) == checkpoint
    assert (
        find_policy(f"{finished_run}") == find_policy(finished_run / "last") == finished_run / "checkpoints/0000000064"
    )
    assert find_policy(f"{league.path}/otter") == league.member_policy("otter")
    assert find_policy(league.member_policy("otter")) == league.member_policy("otter")
    monkeypatch.chdir(league.path)
    assert find_policy("otter").resolve() == league.member_policy("otter")


def test_refusals(league, checkpoint, tmp_path):
    for path, error, reason in (
        (tmp_path / "nothing", CheckpointError, "nothing: no such file or folder"),
        (league.path, LeagueError, r"is a league, expected a member of it: .*/league/MEMBER"),
        (league.path / "oter", LeagueError, "no member 'oter'; did you mean 'otter'"),
        (league.path / "novice", LeagueError, "'novice' is scripted: it has no policy"),
    ):
        with pytest.raises(error, match=reason):
            find_policy(path)
    (league.member_policy("otter") / WEIGHTS_FILE).write_bytes(b"")
    with pytest.raises(LeagueError, match=r"'otter' cannot be used: .*altered"):
        find_policy(league.path / "otter")


def test_a_member_keeps_the_folder_that_it_was_trained_in(league, checkpoint):
    folder = league.member_policy("otter")
    shutil.rmtree(checkpoint)
    assert origin(folder) == origin(checkpoint) == checkpoint
