"""The folder of a training run.

::

    run.json        the resolved configuration, and what else the run follows from
    diff.patch      what the checkout had changed since its commit, if it had
    metrics.jsonl   one line of metrics per update
    curves.png      the same as a picture
    tensorboard/    the same for TensorBoard
    wandb/          the same for Weights & Biases, if asked for
    checkpoints/    see `checkpoint`
    last.json       the name of the newest checkpoint
"""

from __future__ import annotations

import contextlib
import datetime
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from echelon_env.atomic import free_path, write_bytes, write_json
from echelon_env.evaluate import validation_seed
from echelon_env.schema import ConfigError
from echelon_train.checkpoint import LAST_FILE
from echelon_train.config import TrainConfig
from echelon_train.errors import RunFolderError
from echelon_train.provenance import git_commit, git_diff, machine, package_versions

RUN_FILE = "run.json"
METRICS_FILE = "metrics.jsonl"
DIFF_FILE = "diff.patch"
MOST_DIFF = 2**20
"""Bytes that a patch is kept up to; what is larger holds data, and no change to the code."""


def claim_folder(path: Path) -> None:
    """Make an empty folder that can be written.

    Raises RunFolderError if it holds anything already, and OSError if it cannot be made or written.
    """
    path.mkdir(parents=True, exist_ok=True)
    if any(path.iterdir()):
        raise RunFolderError(f"{path} is not empty; choose another folder, or remove it: runs are never overwritten")
    with tempfile.TemporaryFile(dir=path):
        pass


@contextlib.contextmanager
def run_folder(path: Path, config: TrainConfig) -> Iterator[None]:
    """Claim a run's folder, write into it what the run follows from, and let the run happen in the block.

    A run that fails before its first checkpoint leaves no folder, so that it can be tried again. An OSError that names
    no file (a full disk) is made to name the folder. Raises as `claim_folder`.
    """
    claim_folder(path)
    try:
        seeds = {"run": config.seed, "validation": validation_seed(config.seed)}
        write_json(path / RUN_FILE, {"config": config.to_dict(), "seeds": seeds, **_circumstances(path), "resumed": []})
        yield
    except BaseException as error:
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)
        if not (path / LAST_FILE).exists():
            shutil.rmtree(path, ignore_errors=True)
        raise


def read_run_config(path: Path) -> TrainConfig:
    """The configuration of the run in a folder. Raises RunFolderError where there is none, or it cannot be used."""
    document = _read_document(path)
    try:
        return TrainConfig.from_dict(document["config"])
    except (KeyError, ConfigError) as error:
        reason = error if isinstance(error, ConfigError) else "holds no configuration"
        raise RunFolderError(f"{path / RUN_FILE}: {reason}") from None


def record_resume(path: Path, config: TrainConfig, steps: int) -> None:
    """Write into a run's folder that the run goes on from `steps` samples, here and now.

    The configuration takes the place of the old one, as a run may be extended. Raises RunFolderError, OSError.
    """
    document = _read_document(path)
    document["config"] = config.to_dict()
    document["resumed"] = [*document.get("resumed", []), {"steps": steps, **_circumstances(path)}]
    write_json(path / RUN_FILE, document)


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of a run's metrics, each a dict from a metric's name to its value.

    A last line that was not written to its end, when the run was killed, is left out. Raises OSError, and
    RunFolderError for a file that holds something else.
    """
    lines = (path / METRICS_FILE).read_text().split("\n")[:-1]  # what follows the last line's end is no line
    metrics = []
    for number, line in enumerate(lines, 1):
        try:
            metrics.append(json.loads(line))
        except ValueError as error:
            raise RunFolderError(f"{path / METRICS_FILE}:{number}: expected a line of JSON: {error}") from None
        if not isinstance(metrics[-1], dict) or type(metrics[-1].get("time/total_timesteps")) is not int:
            raise RunFolderError(f"{path / METRICS_FILE}:{number}: expected an integer 'time/total_timesteps'")
    return metrics


def rewind_metrics(path: Path, steps: int) -> None:
    """Remove a run's metrics of beyond `steps` samples, which come again when the run goes on from there.

    A run that ended has written a second line for its last number of samples; what is in it comes again, too. Raises as
    `read_metrics`, but not for a run that has no metrics yet.
    """
    if not (path / METRICS_FILE).exists():
        return
    kept: dict[int, dict[str, Any]] = {}
    for line in read_metrics(path):
        if line["time/total_timesteps"] <= steps:
            kept.setdefault(line["time/total_timesteps"], line)
    write_bytes(path / METRICS_FILE, "".join(f"{json.dumps(line)}\n" for line in kept.values()).encode())


def differences_from(path: Path) -> list[str]:
    """What is not as it was when a run began or last went on, and could change its numbers: packages, the machine."""
    document = _read_document(path)
    before = [document, *document.get("resumed", [])][-1]
    now = {**package_versions(), "machine": machine()}
    then = {**before.get("packages", {}), "machine": before.get("machine")}
    return [f"{name}: {then[name]} then, {now[name]} now" for name in now if name in then and then[name] != now[name]]


def _read_document(path: Path) -> dict[str, Any]:
    file = path / RUN_FILE
    try:
        document = json.loads(file.read_text())
    except FileNotFoundError:
        raise RunFolderError(f"{path} is no training run: it has no {RUN_FILE}") from None
    except ValueError as error:
        raise RunFolderError(f"{file}: expected JSON: {error}") from None
    if not isinstance(document, dict):
        raise RunFolderError(f"{file}: expected an object, got {type(document).__name__}")
    return document


def _circumstances(path: Path) -> dict[str, Any]:
    """What a run or a part of it follows from beside its configuration; the checkout's changes become a file."""
    diff = git_diff()
    file = free_path(path / DIFF_FILE) if 0 < len(diff) <= MOST_DIFF else None
    if file:
        write_bytes(file, diff)
    return {
        "started": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "command": sys.argv,
        "git_commit": git_commit(),
        "git_diff": {"bytes": len(diff), "file": file and file.name},
        "packages": package_versions(),
        "machine": machine(),
    }
