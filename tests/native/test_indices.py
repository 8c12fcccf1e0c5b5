"""The library's kernels index without the wrap-around of negative numbers, so they must use none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PLAY = """
import sys

import numpy as np

sys.path.insert(0, "native")
from lower import index_without_wrap

from echelon_env import BattleEngine, opponents

index_without_wrap()  # with NUMBA_BOUNDSCHECK an index below 0 then raises IndexError
slow = "expert@reaction_delay=0.4,aim_error=0.2,fire_rate=0.5"
for scenario, name in (("duel", "expert"), ("skirmish", slow), ("battle", "expert"), ("skirmish", "champion")):
    engine = BattleEngine(scenario, num_battles=2)
    player = opponents.make(name, 0, engine.config)
    seen = engine.reset([1, 2])
    player.reset(np.ones(2 * engine.num_mechs, bool))
    for decision in range(120):
        if decision == 60:
            kept = engine.snapshot()
        elif decision == 90:
            engine.restore(kept)
            seen = engine.observations
        rows = seen.reshape(-1, engine.observation_dim)
        seen = engine.step(player.act(rows).reshape(2, engine.num_mechs, -1))[0]
        engine.possibilities()
"""


@pytest.mark.slow
def test_kernels_use_no_negative_index(tmp_path):
    pytest.importorskip("numba")
    settings = {"ECHELON_JIT": "1", "NUMBA_BOUNDSCHECK": "1", "ECHELON_CACHE_DIR": str(tmp_path)}
    environment = os.environ | settings | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", PLAY], env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
