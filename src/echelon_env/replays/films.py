"""Battles as animated GIFs."""

from __future__ import annotations

import os
from pathlib import Path

from echelon_env.config.battle import BattleConfig
from echelon_env.evaluate import Player
from echelon_env.render import render_frame, save_gif
from echelon_env.replays.matches import record_battle
from echelon_env.replays.replay import Replay

FPS = 8  # twice real time at four decisions per second
END_FRAMES = 2 * FPS  # repetitions of the last frame


def export_gif(replay: Replay, path: str | os.PathLike[str], pixels: int = 480) -> None:
    """Write a battle as a GIF, `pixels` wide, at twice real time. Raises OSError, and ReplayError as `Replay.play`."""
    frames = [render_frame(replay.config, engine.state, 0, pixels) for engine in replay.play()]
    save_gif(frames + frames[-1:] * END_FRAMES, path, FPS)


def film_battle(
    path: Path, first: Player, second: Player, config: BattleConfig, *, seed: int, side: int, pixels: int = 480
) -> None:
    """Play a battle of a match again, see `record_battle`, and write it with `export_gif`."""
    export_gif(record_battle(first, second, config, seed=seed, side=side), path, pixels)
