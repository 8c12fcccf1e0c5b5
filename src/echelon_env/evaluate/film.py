"""Animated GIFs of evaluation battles."""

from __future__ import annotations

import contextlib
from pathlib import Path

from echelon_env.config.battle import BattleConfig
from echelon_env.evaluate import Player, play
from echelon_env.render import render_frame, save_gif

FPS = 8  # twice real time at four decisions per second
END_FRAMES = 2 * FPS  # repetitions of the last frame


def film_battle(
    path: Path, first: Player, second: Player, config: BattleConfig, *, seed: int, side: int, pixels: int = 480
) -> None:
    """Replay a battle of a match exactly, and write it as a GIF.

    Parameters
    ----------
    path
        The file to write.
    first, second
        The players, as in the match.
    config
        The battle's configuration.
    seed
        Seed of the battle's map.
    side
        The first player's team.
    pixels
        Width of the GIF.

    Raises
    ------
    OSError
        If the file cannot be written.
    ValueError
        For a seed that is not in `EVALUATION_SEEDS`.
    """
    with contextlib.closing(play(first, second, config, [seed], side=side)) as moments:
        frames = [render_frame(config, battles.engine.state, 0, pixels) for battles in moments]
    save_gif(frames + frames[-1:] * END_FRAMES, path, FPS)
