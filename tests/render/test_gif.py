import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from echelon_env.config.battle import BattleConfig
from echelon_env.engine.state import State
from echelon_env.render import render_frame, save_gif


@pytest.fixture
def frames(config: BattleConfig, state: State) -> list[NDArray[np.uint8]]:
    """A mech that walks east."""
    pictures = []
    for step in range(6):
        state.mechs["x"][0, 4] = 26 + 2 * step
        pictures.append(render_frame(config, state, pixels=300))
    return pictures


def read(path: Path) -> tuple[list[NDArray[np.uint8]], list[int]]:
    """Frames and their durations in ms."""
    pictures, durations = [], []
    with Image.open(path) as film:
        for number in range(film.n_frames):
            film.seek(number)
            pictures.append(np.array(film.convert("RGB")))
            durations.append(film.info["duration"])
    return pictures, durations


def test_the_gif_has_the_given_frames_and_their_times(frames: list[NDArray[np.uint8]], tmp_path: Path) -> None:
    path = tmp_path / "battle.gif"
    path.write_bytes(b"old")
    save_gif(frames, str(path), fps=10)
    pictures, durations = read(path)
    assert durations == [100] * 6
    for picture, frame in zip(pictures, frames, strict=True):
        assert np.abs(picture.astype(int) - frame).mean() < 2
    size = path.stat().st_size
    save_gif(frames[:1], path)
    assert size < 2 * path.stat().st_size, "only changes are stored"
    save_gif(frames, path)
    durations = read(path)[1]
    assert set(durations) == {120, 130} and sum(durations) == 750
    save_gif([frames[0], *[frames[1]] * 3], path, fps=10)
    assert read(path)[1] == [100, 300]
    assert os.listdir(tmp_path) == ["battle.gif"]


def test_frames_of_many_colours_are_written(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (3, 40, 30, 3), dtype=np.uint8)
    save_gif(list(noise), tmp_path / "noise.gif")
    pictures, _ = read(tmp_path / "noise.gif")
    assert [picture.shape for picture in pictures] == [(40, 30, 3)] * 3
    assert np.abs(np.stack(pictures).astype(int) - noise).mean() < 40


def test_a_failure_names_the_file(frames: list[NDArray[np.uint8]], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        save_gif(frames, tmp_path / "nowhere" / "battle.gif")
    assert caught.value.filename == str(tmp_path / "nowhere" / "battle.gif")


SMALL = np.zeros((10, 10, 3), np.uint8)


@pytest.mark.parametrize(
    ("frames", "fps", "message"),
    [
        ([], 8, "frames: expected at least one, got none"),
        ([np.zeros((9, 10, 3), np.uint8), SMALL], 8, r"got \(10, 10, 3\) uint8 at index 1"),
        ([SMALL.astype(float)], 8, "float64 at index 0"),
        *(([SMALL], fps, "fps: expected more than 0 and at most 50") for fps in (0, -1, 51, float("nan"))),
        ([SMALL] * 3000, 4.0, "fps: expected frames of at most 655 s, equal ones together"),
        ([SMALL, SMALL + np.uint8(1)], 0.001, "fps: expected frames of at most 655 s"),
    ],
)
def test_bad_arguments_are_refused(frames: list, fps: float, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        save_gif(frames, tmp_path / "battle.gif", fps)
    assert os.listdir(tmp_path) == []
