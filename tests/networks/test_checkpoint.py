import re

from echelon_env.layout import observations
from echelon_env.networks import checkpoint


def test_the_observation_layout_hash_depends_on_the_layout(monkeypatch):
    before = checkpoint.observation_layout_hash()
    assert re.fullmatch("[0-9a-f]{64}", before)
    assert before == checkpoint.observation_layout_hash()
    streams = dict(observations.STREAMS)
    streams.pop("squad")
    monkeypatch.setattr(checkpoint, "STREAMS", streams)
    assert checkpoint.observation_layout_hash() != before


def test_the_action_layout_hash_depends_on_the_bounds(monkeypatch):
    before = checkpoint.action_layout_hash()
    monkeypatch.setattr(checkpoint, "ACTION_HIGH", 2.0)
    assert checkpoint.action_layout_hash() != before
