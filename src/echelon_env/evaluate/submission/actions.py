"""Recorded actions: packed for a file, and played again."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.evaluate.players import BattleNoise, Player
from echelon_env.evaluate.submission.document import SubmissionError
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.opponents import FunctionPolicy

Floats = NDArray[np.float32]

Recording = Mapping[int, Floats]
"""Seed of a battle -> the actions (T, M, A) float32 of a player's M mechs in its T decisions."""

RECORDED = "(recorded)"
"""Name of a player whose actions are played back. No opponent has it."""


def pack_actions(actions: Floats) -> bytes:
    """Actions (T, M, A) float32 as zlib data: entry by entry, and in each mech by mech and byte by byte.

    This order takes less space than that of the array: most entries hardly change from decision to decision.
    """
    return zlib.compress(np.ascontiguousarray(_planes(actions)).tobytes(), 9)


def unpack_actions(data: bytes, shape: tuple[int, int, int]) -> Floats:
    """The inverse of `pack_actions` for the shape (T, M, A). Raises SubmissionError for other data.

    The memory is bounded by the shape, whatever the data would unpack to.
    """
    size = 4 * int(np.prod(shape))
    unpacker = zlib.decompressobj()
    try:
        plain = unpacker.decompress(data, size + 1)
    except zlib.error as error:
        raise SubmissionError(f"the actions cannot be unpacked ({error})") from None
    if len(plain) != size or not unpacker.eof or unpacker.unused_data:
        raise SubmissionError(f"the actions are not those of {shape[0]} decisions of {shape[1]} mechs")
    planes = np.frombuffer(plain, np.uint8).reshape(*shape[:0:-1], 4, shape[0])
    actions = np.ascontiguousarray(planes.transpose(3, 1, 0, 2)).view("<f4")[..., 0].astype(np.float32)
    if not np.isfinite(actions).all():
        raise SubmissionError("expected finite actions")
    return actions


def _planes(actions: Floats) -> NDArray[np.uint8]:
    """The bytes (A, M, 4, T) of actions (T, M, A)."""
    return np.ascontiguousarray(actions, "<f4").view(np.uint8).reshape(*actions.shape, 4).transpose(2, 1, 3, 0)


def playback(recording: Recording) -> Player:
    """A player that takes the recorded actions in the battles of the recording's seeds, and zeros after their end."""

    def make(config: BattleConfig, noise: BattleNoise) -> FunctionPolicy:
        battles = [recording[seed] for seed in noise.seeds]
        zeros = np.zeros((len(battles) * noise.team_size, ACTION_DIM), np.float32)
        decisions = iter(np.stack([_padded(each, max(map(len, battles))) for each in battles], axis=1))
        return FunctionPolicy(lambda observations: next(decisions, zeros).reshape(zeros.shape))

    return Player(RECORDED, "scripted", make)


def _padded(actions: Floats, decisions: int) -> Floats:
    return np.pad(actions, ((0, decisions - len(actions)), (0, 0), (0, 0)))
