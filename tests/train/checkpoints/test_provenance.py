import re
import shutil
import subprocess

import pytest

from echelon_train.checkpoints import provenance


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository with one commit, in which the module is a tracked file."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    source = tmp_path / "provenance.py"
    source.write_text("old\n")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    monkeypatch.setattr(provenance, "__file__", str(source))
    return tmp_path


def test_the_commit_and_the_diff_of_a_checkout(checkout):
    assert re.fullmatch("[0-9a-f]{40}", provenance.git_commit())
    assert provenance.git_diff() == b""
    (checkout / "untracked.txt").write_text("new\n")
    (checkout / "provenance.py").write_bytes(b"caf\xe9\n")
    patch = provenance.git_diff()
    assert b"-old\n+caf\xe9\n" in patch
    assert b"untracked" not in patch


def test_an_installed_package_inside_a_repository_has_no_commit(checkout, monkeypatch):
    (checkout / "installed.py").write_text("")
    monkeypatch.setattr(provenance, "__file__", str(checkout / "installed.py"))
    assert provenance.git_commit() is None
    assert provenance.git_diff() == b""
