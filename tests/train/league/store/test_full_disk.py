"""Leagues on a file system that is really full."""

import shutil
import subprocess
import sys

import pytest

from train.league.leagues import run_script

SMALL = ("unshare", "--user", "--map-root-user", "--mount", "--")
"""A process whose mounts no other process sees, and which end with it."""

MOUNT = """
import errno, hashlib, os, subprocess, sys
from pathlib import Path
from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.league.store.fsck import fsck
from echelon_train.league.store.registry import League
from train.league.leagues import played, saved, small_league, uuids

disk = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(disk)], check=True)
ballast = disk / "ballast"

def fill(free):
    "Leave as many bytes, in pages."
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError as error:
            assert error.errno == errno.ENOSPC
        file.truncate(file.tell() - free)

def refused(act, named):
    try:
        act()
    except OSError as error:
        assert (error.errno, error.filename) == (errno.ENOSPC, str(named)), (error.errno, error)
        return True
    return False

def files():
    return sorted(str(path) for path in disk.rglob("*"))
"""

FULL = """
checkpoint, other = saved(disk.with_name("checkpoint"), 1), saved(disk.with_name("other"), 2)
league = small_league(disk / "league")
league.record(played("novice", "expert", number=6))
league.add_checkpoint(other, "main", "other")
database = league.path / "league.db"
more = played("novice", "expert", (1, 0), 7, padding=20_000)
weights = hashlib.sha256((checkpoint / "policy.safetensors").read_bytes()).hexdigest()
before = files(), uuids(league), league.history(), league.members()
fill(0)
assert refused(lambda: league.record(more), database)
assert refused(league.rate_matches, database)
assert league.rebuild() == 0, "ratings that are right need no room"
assert refused(lambda: league.retire("expert"), database)
assert refused(lambda: league.add_scripted("veteran"), database)
assert refused(lambda: league.add_checkpoint(checkpoint, "main", "new"), database)
assert refused(lambda: League.create(disk / "second"), disk / "second")
fill(32 * 1024)  # room for the database, not for the files
assert refused(lambda: league.add_checkpoint(checkpoint, "main", "new"), league.path / "members" / weights)
assert refused(lambda: league.record(played("novice", "expert", number=7, padding=60_000)), database)
assert fsck(league.path) == []
assert not league.record(played("novice", "trivial", (1, 1, 0, 1), 1)), "a recorded match needs no room"
ballast.unlink()
assert (files(), uuids(league), league.history(), league.members()) == before
assert league.record(more) and league.rate_matches()
assert load_checkpoint(league.add_checkpoint(checkpoint, "main", "new") and league.member_policy("new"))
assert fsck(league.path) == [] and league.rebuild() == 0
"""


def mounting():
    if sys.platform != "linux" or shutil.which("unshare") is None or shutil.which("mount") is None:
        return False
    return subprocess.run([*SMALL, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True).returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not mounting(), reason="needs its own small file system")
def test_what_does_not_fit_is_refused_and_nothing_is_lost(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    ended = run_script(MOUNT + FULL, disk, prefix=SMALL)
    assert ended.returncode == 0, ended.stderr
