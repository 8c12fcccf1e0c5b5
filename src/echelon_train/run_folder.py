"""The folder of a training run.

::

    run.json        the resolved configuration
    metrics.jsonl   one line of metrics per update
    tensorboard/    the same metrics for TensorBoard
    checkpoints/    see `checkpoint`
    last.json       the name of the newest checkpoint
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from echelon_env.atomic import write_json
from echelon_train.checkpoint import LAST_FILE
from echelon_train.config import TrainConfig
from echelon_train.errors import RunFolderError
from echelon_train.provenance import git_commit, package_versions

METRICS_FILE = "metrics.jsonl"


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
    """Claim a run's folder, write the run's configuration into it, and let the run happen in the block.

    A run that fails before its first checkpoint leaves no folder, so that it can be tried again. An OSError that names
    no file (a full disk) is made to name the folder. Raises as `claim_folder`.
    """
    claim_folder(path)
    try:
        document = {"config": config.to_dict(), "packages": package_versions(), "git_commit": git_commit()}
        write_json(path / "run.json", document)
        yield
    except BaseException as error:
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)
        if not (path / LAST_FILE).exists():
            shutil.rmtree(path, ignore_errors=True)
        raise


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of a run's metrics, each a dict from a metric's name to its value."""
    with (path / METRICS_FILE).open() as file:
        return [json.loads(line) for line in file]
