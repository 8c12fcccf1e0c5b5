"""The examples run from top to bottom, without warnings and with output."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

SHORT = {
    "random_battle.py": ["--decisions=20"],
    "scripted_battle.py": ["--scenario=duel-open", "--decisions=20"],
    "single_pilot.py": [],
    "vector_loop.py": ["--decisions=250"],
    "cleanrl_ppo.py": ["--steps=2048", "--envs=8", "--battles=4"],
    "self_play.py": ["--steps=8192", "--every=4096", "--battles=2"],
    "supersuit_pipeline.py": ["--battles=1", "--steps=1280"],
    "custom_reward.py": ["--decisions=20"],
    "custom_scenario.py": [],
}
"""Arguments with which each example is short."""

OTHERS = {"torchrl_ppo.py", "torchrl_qmix.py", "rllib_ppo.py"}
"""Examples that need further libraries: tests/interop runs them."""


def run(name, arguments, folder):
    """Run an example with warnings as errors; what it prints."""
    command = [sys.executable, "-W", "error", EXAMPLES / name, *arguments]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}  # torch's threads are slow where other tests run beside them
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_every_example_is_run():
    assert {path.name for path in EXAMPLES.glob("*.py")} == SHORT.keys() | OTHERS


@pytest.mark.long
@pytest.mark.parametrize("name", SHORT)
def test_example_runs(name, tmp_path):
    assert run(name, SHORT[name], tmp_path)


@pytest.mark.slow
def test_cleanrl_ppo_learns(tmp_path):
    output = run("cleanrl_ppo.py", ["--steps=200000"], tmp_path)
    before, after = (float(line.split(":")[1]) for line in output.splitlines() if line.startswith("won "))
    assert before <= 0.1 and after >= 0.7
