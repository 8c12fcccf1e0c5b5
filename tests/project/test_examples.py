"""The examples run from top to bottom, without warnings and with output."""

import os
import pickle
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO

EXAMPLES = Path(__file__).parents[2] / "examples"

SHORT = {
    "random_battle.py": ["--decisions=20"],
    "scripted_battle.py": ["--scenario=duel-open", "--decisions=20"],
    "single_pilot.py": [],
    "vector_loop.py": ["--decisions=250"],
    "cleanrl_ppo.py": ["--steps=1024", "--envs=8", "--battles=4"],
    "gpu_ppo.py": ["--device=cpu", "--steps=1024", "--battles=8"],
    "self_play.py": ["--steps=4096", "--every=2048", "--battles=2"],
    "supersuit_pipeline.py": ["--battles=1", "--steps=1280"],
    "custom_reward.py": ["--decisions=20"],
    "search_settings.py": ["--trials=1", "--steps=1024"],
    "custom_scenario.py": [],
}
"""Arguments with which each example is short."""

SLOW = {"search_settings.py": pytest.mark.slow}  # it trains several times

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
@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOW.get(name, ())) for name in SHORT])
def test_example_runs(name, tmp_path):
    assert run(name, SHORT[name], tmp_path)


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.write_text, (self.path, "executed")


@pytest.mark.long
def test_self_play_continues_a_training_from_a_file_that_executes_nothing(tmp_path):
    example = runpy.run_path(str(EXAMPLES / "self_play.py"))
    env = example["make_env"]("novice")
    ours, theirs = (PPO("MlpPolicy", env, seed=seed, device="cpu") for seed in range(2))
    ours.num_timesteps, env.ret_rms.var = 640, np.float64(7.0)
    example["save"](tmp_path, ours, env)
    env.ret_rms.var = np.float64(1.0)
    example["restore"](tmp_path, theirs, env)
    assert (theirs.num_timesteps, env.ret_rms.var) == (640, 7.0)
    for name, tensor in ours.policy.state_dict().items():
        assert tensor.equal(theirs.policy.state_dict()[name]), name
    torch.save({"parameters": {}, "steps": Trap(tmp_path / "trap"), "rewards": {}}, tmp_path / example["FILE"])
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        example["restore"](tmp_path, theirs, env)
    assert not (tmp_path / "trap").exists()
    env.close()


@pytest.mark.slow
def test_cleanrl_ppo_learns(tmp_path):
    output = run("cleanrl_ppo.py", ["--steps=200000"], tmp_path)
    before, after = (float(line.split(":")[1]) for line in output.splitlines() if line.startswith("won "))
    assert before <= 0.1 and after >= 0.7
