"""A battle of an evaluation as a film."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from echelon_env.config import BattleConfig
from echelon_env.render import render_frame, save_gif
from echelon_train.evaluation import play
from echelon_train.players import BLOCK, Contender

FPS = 8  # twice as fast as the battle itself at four decisions a second
END_FRAMES = 2 * FPS  # how long the last picture stays


def film_battle(
    path: Path, contender: Contender, opponent: str, config: BattleConfig, *, seed: int, number: int, pixels: int = 480
) -> None:
    """Play battle `number` of the evaluation `seed` again, exactly as it went, and write it as a GIF."""
    first = number - number % BLOCK
    frames: list[NDArray[np.uint8]] = []
    for battles in play(contender, opponent, config, seed, first, number - first + 1):
        frames.append(render_frame(config, battles.engine.state, number - first, pixels))
        if battles.battle_over[number - first]:
            break
    save_gif(frames + frames[-1:] * END_FRAMES, path, FPS)
