"""A component of the reward is a weight in its configuration and a function in the engine: two files."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import echelon_env

PACKAGE = Path(echelon_env.__file__).parent

EDITS = {
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
"""Text that is put in front of other text, by file."""

BATTLE = """
import numpy as np
from echelon_env import ConfigError, make_config, parallel_env
from echelon_env.config.battle import REWARD_COMPONENTS

assert REWARD_COMPONENTS[-1] == "haste"
env = parallel_env("duel-open", max_steps=2, rewards={"haste": 3.0})
env.reset(seed=0)
_, rewards, *_, infos = env.step({agent: np.ones(27, np.float32) for agent in env.agents})
mechs = env._engine.state.mechs[0]
for agent, m in (("blue_0", 0), ("red_0", 1)):
    components = infos[agent]["reward_components"]
    assert mechs["vx"][m] != 0 and components["haste"] == np.float32(3.0 * mechs["vx"][m])
    assert np.isclose(rewards[agent], sum(components.values()))
"""


def test_a_new_component_is_an_edit_of_two_files(tmp_path):
    """Uncompiled, for a changed kernel would be compiled for this test alone."""
    shutil.copytree(PACKAGE, tmp_path / "echelon_env", ignore=shutil.ignore_patterns("__pycache__"))
    for name, edits in EDITS.items():
        file = tmp_path / "echelon_env" / name
        text = file.read_text(encoding="utf-8")
        for mark, added in edits.items():
            assert text.count(mark) == 1
            text = text.replace(mark, added + mark)
        file.write_text(text, encoding="utf-8")
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(tmp_path)}
    result = subprocess.run([sys.executable, "-c", BATTLE], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
