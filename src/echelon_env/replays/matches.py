"""Replays of the battles of matches."""

from __future__ import annotations

import contextlib

from echelon_env.config.battle import BattleConfig
from echelon_env.evaluate import Player, play
from echelon_env.replays.recorder import Recorder
from echelon_env.replays.replay import Replay
from echelon_env.storage.text import printable


def record_battle(first: Player, second: Player, config: BattleConfig, *, seed: int, side: int = 0) -> Replay:
    """Play a battle of a match, exactly as `echelon_env.evaluate.play_match` plays it, and return its replay.

    The seed is that of the map, in `EVALUATION_SEEDS`; `side` is the first player's team: 0 blue, 1 red. Raises
    ValueError and ConfigError as `echelon_env.evaluate.play`.
    """
    blue, red = (first, second) if side == 0 else (second, first)
    with contextlib.closing(play(first, second, config, [seed], side=side)) as moments:
        recorder = Recorder(next(moments).engine, (printable(blue.name), printable(red.name)), keep=1)
        for _ in moments:
            pass
    return recorder.replays[0]
