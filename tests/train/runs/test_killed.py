"""Runs whose process is killed."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from echelon_env.cli import main
from echelon_train.config.files import load_run_config
from echelon_train.runs.training import resume, train
from train.resuming import OPTIONS, QUIET, differences, resumable_run

KILLED = """
import os, signal, sys
from echelon_env.cli import main
import {module} as module
def kill(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)
module.{function} = kill
main(sys.argv[1:])
"""


def killed_run(folder: Path, module: str, function: str) -> None:
    options = [f"--set={name}={value}" for name, value in OPTIONS.items()]
    script = KILLED.format(module=module, function=function)
    ended = subprocess.run([sys.executable, "-c", script, "train", *options, "--out", str(folder)], check=False)
    assert ended.returncode == -signal.SIGKILL


@pytest.mark.long
def test_a_run_that_was_killed_before_its_first_checkpoint_restarts(tmp_path):
    """After the checkpoint was written, and before the file that names it."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    train(load_run_config("quickstart", OPTIONS), whole, console=QUIET)
    killed_run(killed, "echelon_train.checkpoints.checkpoint", "write_json")
    left = {each.name for each in killed.iterdir() if each.suffix != ".patch"}
    assert left == {"checkpoints", "lock", "metrics.jsonl", "run.json", "tensorboard"}
    assert main(["train", "--resume", str(killed)]) == 0
    assert differences(whole, killed) == []


def test_a_first_checkpoint_without_its_name_is_no_beginning(tmp_path):
    """The machine may stop between it and the file that names it."""
    run = tmp_path / "run"
    train(resumable_run(steps=32), run, console=QUIET)
    later = (run / "checkpoints" / "0000000032" / "training.safetensors").read_bytes()
    (run / "last.json").unlink()
    assert resume(run, console=QUIET).nothing, "there is a later one"
    assert (run / "checkpoints" / "0000000032" / "training.safetensors").read_bytes() == later
    (run / "last.json").unlink()
    shutil.rmtree(run / "checkpoints" / "0000000032")
    result = resume(run, console=QUIET)
    assert result.steps == 32 and not result.nothing


SAVING = """
import os, sys
from pathlib import Path
from echelon_train.checkpoints import checkpoint as module
from echelon_train.checkpoints.checkpoint import *
from echelon_env.networks.config import NetworkConfig
from echelon_train.config.train import battle_config
from echelon_train.policy import build_policy

CALLS = {"open", "fdopen", "write", "flush", "fsync", "close", "rename", "replace", "unlink", "mkdir", "rmdir", "chmod"}
run, battle = Path(sys.argv[1]), battle_config("duel")
network = NetworkConfig(width=8, head=8, set_width=4, map_channels=2)
policy = build_policy(network)
module.package_versions, module.git_commit = dict, lambda: None  # which read many files

def save(steps):
    policy.value_net.bias.data.fill_(float(steps))
    state = TrainingState({"weight": policy.value_net.bias.data.clone()}, {"steps": steps})
    save_in_run(run, Checkpoint(policy, network, battle, "trivial", steps), state)

def killed_before(call, steps):
    # whether a process that saves ends before its call of the system with this number
    left = call
    def watch(frame, event, function):
        nonlocal left
        if event == "c_call" and function.__name__ in CALLS:
            left -= 1
            if left < 0:
                os._exit(1)  # the system does not see the difference to a kill: what Python has not written is lost
    process = os.fork()
    if not process:
        sys.setprofile(watch)
        save(steps)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 1

save(1)
last, call = 1, 0
while killed_before(call, last + 1):
    call += 1
    checkpoint, state = load_checkpoint(run), load_training_state(run)
    assert checkpoint.steps in (last, last + 1), call
    last = checkpoint.steps
    weights = float(checkpoint.policy.value_net.bias.detach())
    assert (weights, float(state.tensors["weight"]), state.values) == (last, last, {"steps": last}), call
print(call, last)
"""


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes to be killed are forked")
def test_wherever_a_process_is_killed_while_it_saves_the_last_checkpoint_is_whole(tmp_path):
    """Before each of its calls of the file system, one after the other, with its number in all of its files."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", SAVING, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert ended.returncode == 0, ended.stderr
    calls, last = map(int, ended.stdout.split())
    assert calls > 30 and last > 1
