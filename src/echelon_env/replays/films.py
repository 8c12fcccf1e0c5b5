"""Battles as animated GIFs."""

from __future__ import annotations

import itertools
import os

from echelon_env.render import render_frame, save_gif
from echelon_env.replays.replay import Replay

SPEED = 2  # x real time
END_SECONDS = 2.0  # for which the last frame is shown
MAX_FRAMES = 500
"""Of a film, without the repetitions; they take about 0.75 MB each while it is made, at a width of 480 pixels."""


def export_gif(replay: Replay, path: str | os.PathLike[str], pixels: int = 480) -> None:
    """Write a battle as a GIF, `pixels` wide, at twice real time. Raises OSError, and ReplayError as `Replay.play`.

    Of a long battle only every n-th decision is shown, at most `MAX_FRAMES` in all.
    """
    every = 1 + replay.decisions // MAX_FRAMES
    moments = itertools.islice(replay.play(), replay.decisions % every, None, every)  # the last one is the end
    frames = [render_frame(replay.config, engine.state, 0, pixels) for engine in moments]
    fps = min(50.0, SPEED / (replay.config.decision_seconds * every))  # the most that a GIF can have
    save_gif(frames + frames[-1:] * int(END_SECONDS * fps), path, fps)
