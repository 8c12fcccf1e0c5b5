"""The comparison with an earlier commit, with made-up trees; none is built, and nothing measured."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))  # the benchmarks are no installed package

from benchmarks.peers.environments import WHOLE, PeerError  # noqa: E402
from benchmarks.timing import Effort  # noqa: E402

from benchmarks import before as section  # noqa: E402

RUNNER = """
import json, os, sys
assert os.environ["PYTHONPATH"].endswith("src")
print(json.dumps({"ready": True}), flush=True)
for turn, line in enumerate(sys.stdin):
    print(json.dumps({"seconds": 2.0, "live_steps": RATE * (turn + 1), "steps": STEPS * (turn + 1)}), flush=True)
"""


def tree(folder, rate, living=5.0):
    runners = folder / "benchmarks" / "peers" / "runners"
    runners.mkdir(parents=True)
    (runners / "echelon.py").write_text(RUNNER.replace("RATE", str(rate)).replace("STEPS", str(rate / living)))
    return folder


def test_ratios_are_those_of_rounds(tmp_path, monkeypatch):
    old = tree(tmp_path / f"echelon-{section.COMMIT[:10]}", 10)
    (old / WHOLE).write_text("")
    monkeypatch.setattr(section, "ROOT", tree(tmp_path / "now", 15))
    (table,) = section.before(Effort(quick=True, rounds=3, decisions=1, peers=tmp_path))
    assert table.rows.keys() == section.ROWS.keys()
    assert set(table.rows.values()) == {(25.0, 37.5, 1.5, 1.5, 1.5)}, "medians of nine turns, three for each round"


def test_other_battles_are_not_compared(tmp_path, monkeypatch):
    old = tree(tmp_path / f"echelon-{section.COMMIT[:10]}", 10)
    (old / WHOLE).write_text("")
    monkeypatch.setattr(section, "ROOT", tree(tmp_path / "now", 10, living=4.0))
    (table,) = section.before(Effort(quick=True, rounds=3, decisions=1, peers=tmp_path))
    assert not table.rows
    assert "Not measured: the battles differ: living mechs a battle {'before': 5.0, 'now': 4.0}" in " ".join(
        table.notes
    )


def test_without_the_commit_nothing_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(section, "ROOT", tmp_path)  # no clone
    (table,) = section.before(Effort(quick=True, rounds=3, decisions=1, peers=tmp_path))
    assert not table.rows
    assert "Not measured: git archive: fatal" in " ".join(table.notes)


def test_a_commit_is_taken_from_the_clone_and_built_once(tmp_path, monkeypatch):
    built = []
    monkeypatch.setattr(section, "run", lambda command, cwd, env: built.append((cwd, env["PYTHONPATH"])))
    folder = section.tree_of("HEAD", tmp_path)  # a clone may be shallow
    assert (folder / "src" / "echelon_env" / "__init__.py").exists()
    assert built == [(folder, str(folder / "src"))]
    assert section.tree_of("HEAD", tmp_path) == folder and len(built) == 1


def test_a_commit_that_does_not_build_is_built_again(tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise PeerError("no compiler")

    monkeypatch.setattr(section, "run", fail)
    for _ in range(2):
        with pytest.raises(PeerError, match="no compiler"):
            section.tree_of("HEAD", tmp_path)
