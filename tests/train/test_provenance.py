import re

from echelon_env import observations
from echelon_train import provenance


def test_the_layout_hash_follows_the_layout(monkeypatch):
    before = provenance.observation_layout_hash()
    assert re.fullmatch("[0-9a-f]{64}", before)
    assert before == provenance.observation_layout_hash()
    streams = dict(observations.STREAMS)
    streams.pop("squad")
    monkeypatch.setattr(provenance, "STREAMS", streams)
    assert provenance.observation_layout_hash() != before


def test_the_action_hash_follows_the_bounds(monkeypatch):
    before = provenance.action_layout_hash()
    monkeypatch.setattr(provenance, "ACTION_HIGH", 2.0)
    assert provenance.action_layout_hash() != before


def test_versions_are_known():
    assert re.match(r"\d+\.\d+", provenance.package_versions()["torch"])


def test_the_commit_is_a_hash_or_unknown():
    commit = provenance.git_commit()
    assert commit is None or re.fullmatch("[0-9a-f]{40}", commit)


def test_without_git_there_is_no_commit(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert provenance.git_commit() is None
