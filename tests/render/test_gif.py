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


def test_the_gif_has_the_given_frames(frames: list[NDArray[np.uint8]], tmp_path: Path) -> None:
    path = tmp_path / "battle.gif"
    save_gif(frames, path, fps=10)
    pictures, durations = read(path)
    assert durations == [100] * 6
    for picture, frame in zip(pictures, frames, strict=True):
        assert np.abs(picture.astype(int) - frame).mean() < 2
    assert os.listdir(tmp_path) == ["battle.gif"]


def test_the_total_duration_is_right_with_fractional_hundredths(
    frames: list[NDArray[np.uint8]], tmp_path: Path
) -> None:
    path = tmp_path / "battle.gif"
    save_gif(frames, path)
    durations = read(path)[1]
    assert set(durations) == {120, 130}
    assert sum(durations) == 750


def test_equal_frames_become_one_that_lasts_longer(frames: list[NDArray[np.uint8]], tmp_path: Path) -> None:
    path = tmp_path / "battle.gif"
    save_gif([frames[0], frames[1], frames[1], frames[1]], path, fps=10)
    assert read(path)[1] == [100, 300]


def test_only_changes_are_stored(frames: list[NDArray[np.uint8]], tmp_path: Path) -> None:
    save_gif(frames[:1], tmp_path / "one.gif")
    save_gif(frames, tmp_path / "six.gif")
    one, six = ((tmp_path / name).stat().st_size for name in ("one.gif", "six.gif"))
    assert six < 2 * one


def test_frames_of_many_colours_are_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (3, 40, 30, 3), dtype=np.uint8)
    save_gif(list(noise), tmp_path / "noise.gif")
    pictures, _ = read(tmp_path / "noise.gif")
    assert [picture.shape for picture in pictures] == [(40, 30, 3)] * 3
    assert np.abs(np.stack(pictures).astype(int) - noise).mean() < 40


def test_an_existing_file_is_replaced(frames: list[NDArray[np.uint8]], tmp_path: Path) -> None:
    path = tmp_path / "battle.gif"
    path.write_bytes(b"old")
    save_gif(frames, str(path))
    assert len(read(path)[0]) == 6


def test_missing_folder_is_named(frames: list[NDArray[np.uint8]], tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "battle.gif"
    with pytest.raises(FileNotFoundError, match="cannot write the GIF: No such file or directory") as caught:
        save_gif(frames, path)
    assert str(path) in str(caught.value)


def test_a_failure_leaves_only_the_old_file(
    frames: list[NDArray[np.uint8]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise PermissionError(13, "Permission denied", str(source))

    path = tmp_path / "battle.gif"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError, match="cannot write the GIF: Permission denied") as caught:
        save_gif(frames, path)
    assert caught.value.filename == str(path)
    assert os.listdir(tmp_path) == ["battle.gif"]
    assert path.read_bytes() == b"old"


def test_bad_arguments_are_refused(frames: list[NDArray[np.uint8]], tmp_path: Path) -> None:
    path = tmp_path / "battle.gif"
    with pytest.raises(ValueError, match="frames: expected at least one, got none"):
        save_gif([], path)
    with pytest.raises(ValueError, match=r"got \(10, 10, 3\) uint8 at index 1"):
        save_gif([frames[0], np.zeros((10, 10, 3), np.uint8)], path)
    with pytest.raises(ValueError, match="float64 at index 0"):
        save_gif([np.zeros((10, 10, 3))], path)  # type: ignore[list-item]
    for fps in (0, -1, 51, float("nan")):
        with pytest.raises(ValueError, match="fps: expected more than 0 and at most 50"):
            save_gif(frames, path, fps)
    for still, fps in (([frames[0]] * 3000, 4.0), (frames, 0.001)):
        with pytest.raises(ValueError, match="fps: expected frames of at most 655 s, equal ones together"):
            save_gif(still, path, fps)
    assert os.listdir(tmp_path) == []
