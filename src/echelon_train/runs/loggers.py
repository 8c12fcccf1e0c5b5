"""Outputs of a run's metrics: lines of JSON, TensorBoard, and Weights & Biases if requested."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image
from stable_baselines3.common.logger import JSONOutputFormat, KVWriter, Logger, TensorBoardOutputFormat
from tensorboard.compat.proto.summary_pb2 import Summary
from torch import Tensor
from torch.utils.tensorboard.writer import SummaryWriter

from echelon_env.engine.kernels import BackendError
from echelon_env.networks.checkpoint import JSON_FILE, WEIGHTS_FILE
from echelon_env.replays import Replay, ReplayError, export_gif, write_page, write_replay
from echelon_env.storage.atomic import write_bytes
from echelon_env.storage.reading import without_waiting
from echelon_train.config.train import TrainConfig
from echelon_train.errors import TrainError
from echelon_train.runs.folder import METRICS_FILE, rewind_metrics

FILMS_FOLDER = "battles"
"""Holds the films of a run."""

FILM_PIXELS = 320

WANDB_FILE = "wandb.id"
"""Holds the id of a run at Weights & Biases, with which a resumed run continues there."""


class Film(NamedTuple):
    """A battle, as files; a value of a logger."""

    gif: Path
    page: Path | None  # None where this installation has no WebAssembly module


class SavedPolicy(NamedTuple):
    """A checkpoint of the run; a value for Weights & Biases, which gets the policy as an artifact."""

    folder: Path


NOT_TEXT = ("stdout", "log", "json", "csv")
"""The outputs of texts, which leave out films and histograms."""
NOT_WANDB = (*NOT_TEXT, "tensorboard")
"""The outputs that leave out a `SavedPolicy`."""


def write_film(folder: Path, name: str, replay: Replay) -> Film:
    """Write a battle into a folder: as a GIF, and as a page, or as a replay where no page can be made.

    Raises OSError and ReplayError.
    """
    folder.mkdir(exist_ok=True)
    gif, page = folder / f"{name}.gif", folder / f"{name}.html"
    export_gif(replay, gif, FILM_PIXELS)
    try:
        write_page(page, replay)
    except (BackendError, ReplayError):
        write_replay(page.with_suffix(".replay"), replay)
        return Film(gif, None)
    return Film(gif, page)


def check_wandb() -> None:
    """Raise TrainError, with the command to install it, if the package of Weights & Biases is missing."""
    _import_wandb()


def open_logger(run: Path, config: TrainConfig, *, resumed_at: int | None = None, wandb: str | None = None) -> Logger:
    """A logger for SB3's `set_logger` that writes a run's metrics into its folder. The caller closes it.

    `resumed_at` are the samples at which a run is resumed; later metrics are removed first. `wandb` is a project of
    Weights & Biases to log to as well; ``WANDB_MODE=offline`` logs on this machine only.

    Raises TrainError if Weights & Biases is missing or refuses the run, and OSError if the folder cannot be written.
    """
    outputs: list[KVWriter] = []
    if wandb is not None:
        outputs.append(WandbOutput(run, config, wandb))  # first, because only this one can fail
    if resumed_at is not None:
        rewind_metrics(run, resumed_at)
    outputs.append(_JSONLines(run / METRICS_FILE))
    outputs.append(_TensorBoard(run / "tensorboard", None if resumed_at is None else resumed_at + 1))
    return Logger(str(run), outputs)


class _JSONLines(JSONOutputFormat):  # type: ignore[misc]
    """SB3's format, but appends to an existing file and writes valid JSON: no NaN, no Infinity."""

    def __init__(self, path: Path) -> None:
        self.file = open(path, "a", opener=without_waiting)  # noqa: SIM115 - `close` does it

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        """Write a line, with null for numbers that are not finite."""
        values = {
            key: None if isinstance(value, (float, np.floating)) and not math.isfinite(value) else value
            for key, value in key_values.items()
        }
        super().write(values, key_excluded, step)


class _TensorBoard(TensorBoardOutputFormat):  # type: ignore[misc]
    """SB3's format with a `purge_step`: TensorBoard discards older values from this step on."""

    def __init__(self, folder: Path, purge_step: int | None) -> None:
        self.writer = SummaryWriter(str(folder), purge_step=purge_step)
        self._is_closed = False

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        """Write the values, films as images that move."""
        writer: Any = self.writer  # its `add_video` needs the package moviepy
        for key, value in key_values.items():
            if isinstance(value, Film):
                with Image.open(value.gif) as picture:
                    width, height = picture.size
                data = value.gif.read_bytes()
                image = Summary.Image(height=height, width=width, colorspace=3, encoded_image_string=data)
                writer._get_file_writer().add_summary(Summary(value=[Summary.Value(tag=key, image=image)]), step)
        super().write(key_values, key_excluded, step)


class WandbOutput(KVWriter):  # type: ignore[misc]
    """A run's metrics for Weights & Biases, under the name of the run's folder; one that was logged before continues.

    Numbers, texts, films, tensors as histograms, and the policies of checkpoints as artifacts. Raises TrainError if the
    package is missing, or refuses the run, such as without an account.
    """

    def __init__(self, run: Path, config: TrainConfig, project: str) -> None:
        self._wandb = wandb = _import_wandb()
        known = run / WANDB_FILE
        identity = known.read_text() if known.is_file() else None
        try:
            self._run = wandb.init(
                project=project,
                name=run.name,
                id=identity,
                resume=None if identity is None else "allow",
                dir=str(run),
                config=config.to_dict(),
                settings=wandb.Settings(console="off"),  # it would record every frame of the progress display
            )
        except wandb.Error as error:
            raise TrainError(f"Weights & Biases: {error}; WANDB_MODE=offline needs no account") from None
        write_bytes(known, self._run.id.encode())

    def write(self, key_values: dict[str, Any], key_excluded: Mapping[str, tuple[str, ...]], step: int = 0) -> None:
        """Send the values that are not excluded, except for steps that were sent before the run was resumed."""
        if step < self._run.step:
            return
        values: dict[str, Any] = {
            key: value
            for key, value in key_values.items()
            if "wandb" not in (key_excluded[key] or ()) and isinstance(value, (int, float, str, np.number))
        }
        for key, value in key_values.items():
            if isinstance(value, Film):
                values[key] = self._wandb.Video(str(value.gif), format="gif")
                if value.page is not None:
                    values[f"{key}_page"] = self._wandb.Html(str(value.page))
            elif isinstance(value, Tensor):
                values[key] = self._wandb.Histogram(value.tolist())
        self._run.log(values, step=step)
        saved = {key: value.folder for key, value in key_values.items() if isinstance(value, SavedPolicy)}
        for folder in dict.fromkeys(saved.values()):
            self._send(folder, [key.removeprefix("checkpoint/") for key in saved if saved[key] == folder])

    def _send(self, checkpoint: Path, aliases: list[str]) -> None:
        """Send the policy of a checkpoint as a version of the run's artifact, which gets the `aliases`."""
        steps = {"steps": int(checkpoint.name)}
        artifact = self._wandb.Artifact(f"policy-{self._run.id}", type="model", metadata=steps)
        for name in (WEIGHTS_FILE, JSON_FILE):
            artifact.add_file(str(checkpoint / name), name)
        self._run.log_artifact(artifact, aliases=aliases)

    def close(self) -> None:
        """Send the remaining values."""
        self._run.finish()


def _import_wandb() -> Any:
    try:
        return importlib.import_module("wandb")
    except ModuleNotFoundError:
        raise TrainError('--wandb needs wandb: pip install "echelon-env[wandb]"') from None
