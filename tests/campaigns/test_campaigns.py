"""The campaigns' scripts work, and find what they look for."""

import numpy as np
import pytest

from campaigns import fuzz_battles, kill_runs


@pytest.mark.long
def test_cases_of_every_kind(capsys):
    assert fuzz_battles.main(["--case", *map(str, range(16, 22))]) == 0
    kinds = {line.removeprefix("was ") for line in capsys.readouterr().out.splitlines() if line.startswith("was ")}
    assert kinds == {"engine", "environment", "refused"}


def test_a_difference_between_engines_is_found(monkeypatch):
    monkeypatch.setattr(fuzz_battles, "wild_actions", lambda rng, shape: rng.uniform(-1, 1, shape).astype(np.float32))
    config = fuzz_battles.echelon_env.make_config("duel-open", max_steps=40)
    stock = fuzz_battles.BattleEngine.restore
    monkeypatch.setattr(fuzz_battles.BattleEngine, "restore", lambda engine, snapshot: stock(engine, engine.snapshot()))
    with pytest.raises(AssertionError, match="different bytes"):
        fuzz_battles.play_battles(np.random.default_rng(1), config)


@pytest.mark.slow
def test_killed_runs():
    assert kill_runs.main(["--case", "1", "2"]) == 0  # one of each kind
