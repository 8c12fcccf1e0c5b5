"""Adding a reward component, a kind of flight or a statistic edits two files."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import echelon_env

PACKAGE = Path(echelon_env.__file__).parent

COMPONENT = {
    "config/battle.py": {
        '    contested_kill: float = quantity(2.0, "x")': '    haste: float = _weight(2.0, "per m/s", "speed")\n',
    },
    "engine/reward.py": {
        "@kernel\ndef takes_part": (
            '@kernel\ndef haste(mech: Row) -> float:\n    """Speed along x."""\n    return float(mech.vx)\n\n\n'
        ),
        "    )\n    for k in range(NUM_COMPONENTS):\n        row": "        rules.weight_haste * haste(mech),\n",
    },
}
"""Inserted text by the text that it precedes, by file."""

HASTE = """
import numpy as np
from echelon_env import parallel_env
from echelon_env.config.battle import REWARD_COMPONENTS

assert REWARD_COMPONENTS[-1] == "haste"
env = parallel_env("duel-open", max_steps=2, rewards={"haste": 3.0})
env.reset(seed=0)
_, rewards, *_, infos = env.step({agent: np.ones(27, np.float32) for agent in env.agents})
mechs = env.engine.state.mechs[0]
for agent, m in (("blue_0", 0), ("red_0", 1)):
    components = dict(zip(REWARD_COMPONENTS, infos[agent]["reward_components"], strict=True))
    assert mechs["vx"][m] != 0 and components["haste"] == np.float32(3.0 * mechs["vx"][m])
    assert np.isclose(rewards[agent], sum(components.values()))
"""

FLIGHT = {
    "config/flights.py": {
        '"straight", "ballistic", "homing"]': '"rocket", ',
        '}\n"""The rules of every flight': '    "rocket": FlightRules(),\n',
    },
    "engine/guidance.py": {
        "@kernel\ndef next_step": (
            'ROCKET = list(FLIGHTS).index("rocket")\n\n\n'
            "@kernel\ndef burn(projectile: Row) -> None:\n"
            "    projectile.vx, projectile.vy = 1.25 * projectile.vx, 1.25 * projectile.vy\n\n\n"
        ),
        "    length = math.sqrt(dx * dx + dy * dy + dz * dz)\n    if length > projectile": (
            "    if flight == ROCKET:\n        burn(projectile)\n"
        ),
    },
}

ROCKETS = """
from dataclasses import replace
import numpy as np
from echelon_env import BattleEngine
from echelon_env.config.catalog import AUTOCANNON, DEFAULT_CATALOG
from echelon_env.layout.actions import ACTION_DIM, Action

rocket = replace(AUTOCANNON, flight="rocket", speed=4.0, range=30.0, cooldown=9.0, fires_blind=True)
weapons = tuple(rocket if weapon is AUTOCANNON else weapon for weapon in DEFAULT_CATALOG.weapons)
engine = BattleEngine("duel-open", catalog=replace(DEFAULT_CATALOG, weapons=weapons))
engine.reset([0])
engine.step(np.tile(np.eye(ACTION_DIM, dtype=np.float32)[Action.TERTIARY], (1, 2, 1)))
assert engine.state.battles["num_projectiles"][0] == 2
shot = engine.state.projectiles[0, 0]
assert np.isclose(np.hypot(shot["vx"], shot["vy"]), 4.0 * 1.25**5)
"""


STATISTIC = {
    "layout/measures.py": {
        '    Measure("falls",': '    Measure("turns", "turns", "rad", _SUPPORT, "its yaw at decisions", "f8"),\n',
    },
    "engine/commands.py": {
        "        state.statistics[b, m].bad_actions +=": "        state.statistics[b, m].turns += mech.yaw\n",
    },
}

TURNS = """
import numpy as np
from echelon_env import make_config, parallel_env
from echelon_env.evaluate import baseline, evaluation_seed, play_match
from echelon_env.evaluate.battle_totals import BattleTotals, measures

env = parallel_env("duel-open", max_steps=1)
env.reset(seed=0)
yaw = env.engine.state.mechs["yaw"][0].copy()
*_, infos = env.step({agent: np.zeros(27, np.float32) for agent in env.agents})
for m, agent in enumerate(("blue_0", "red_0")):
    named = dict(zip(env.metadata["episode_statistics"], infos[agent]["episode_statistics"], strict=True))
    assert named["turns"] == env.engine.statistics["turns"][0, m] == yaw[m] != 0.0
totals, (one, two) = BattleTotals(), map(baseline, ("idle", "random"))
config, seeds = make_config("duel-open", max_steps=1), [evaluation_seed(0, 0)]
match = play_match(one, two, config, seeds, scenario="x", totals=totals)
sums = totals.sums("own")
assert match.classes[0]["medium"]["turns"] == sums["turns"] == 2.0 * measures(sums)["turns"] != 0.0
"""


@pytest.mark.parametrize(
    ("edits", "battle"),
    [(COMPONENT, HASTE), (FLIGHT, ROCKETS), (STATISTIC, TURNS)],
    ids=["component", "flight", "statistic"],
)
def test_an_extension_of_the_rules_edits_two_files(edits, battle, tmp_path):
    """Runs without the JIT: a changed kernel would be compiled for this test alone."""
    shutil.copytree(PACKAGE, tmp_path / "echelon_env", ignore=shutil.ignore_patterns("__pycache__"))
    for name, additions in edits.items():
        file = tmp_path / "echelon_env" / name
        text = file.read_text(encoding="utf-8")
        for mark, added in additions.items():
            assert text.count(mark) == 1
            text = text.replace(mark, added + mark)
        file.write_text(text, encoding="utf-8")
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(tmp_path)}
    result = subprocess.run([sys.executable, "-c", battle], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
