"""Outputs of a run's metrics: lines of JSON, and TensorBoard."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from stable_baselines3.common.logger import JSONOutputFormat, Logger, TensorBoardOutputFormat
from tensorboard.compat.proto.summary_pb2 import Summary
from torch.utils.tensorboard.writer import SummaryWriter

from echelon_env.engine.kernels import BackendError
from echelon_env.replays import Replay, ReplayError, export_gif, write_page, write_replay
from echelon_env.storage.reading import without_waiting
from echelon_train.runs.folder import METRICS_FILE, rewind_metrics

FILMS_FOLDER = "battles"
"""Holds the films of a run."""

FILM_PIXELS = 320

NOT_TEXT = ("stdout", "log", "json", "csv")
"""The outputs of texts, which leave out films and histograms."""


def write_film(folder: Path, name: str, replay: Replay) -> Path:
    """Write a battle into a folder: as a GIF, and as a page, or as a replay where no page can be made.

    Returns the path of the GIF, which `open_logger`'s outputs take as a value. Raises OSError and ReplayError.
    """
    folder.mkdir(exist_ok=True)
    gif, page = folder / f"{name}.gif", folder / f"{name}.html"
    export_gif(replay, gif, FILM_PIXELS)
    try:
        write_page(page, replay)
    except (BackendError, ReplayError):
        write_replay(page.with_suffix(".replay"), replay)
    return gif


def open_logger(run: Path, *, resumed_at: int | None = None) -> Logger:
    """A logger for SB3's `set_logger` that writes a run's metrics into its folder. The caller closes it.

    `resumed_at` are the samples at which a run is resumed; later metrics are removed first. Raises OSError if
    the folder cannot be written.
    """
    if resumed_at is not None:
        rewind_metrics(run, resumed_at)
    tensorboard = _TensorBoard(run / "tensorboard", None if resumed_at is None else resumed_at + 1)
    return Logger(str(run), [_JSONLines(run / METRICS_FILE), tensorboard])


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
            if isinstance(value, Path):
                with Image.open(value) as picture:
                    width, height = picture.size
                data = value.read_bytes()
                image = Summary.Image(height=height, width=width, colorspace=3, encoded_image_string=data)
                writer._get_file_writer().add_summary(Summary(value=[Summary.Value(tag=key, image=image)]), step)
        super().write(key_values, key_excluded, step)
