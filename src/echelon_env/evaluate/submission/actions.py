"""Recorded actions: packed for a file, recorded from a player, and played again."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from echelon_env.evaluate.players import BattleNoise, Player
from echelon_env.evaluate.submission.document import SubmissionError
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.opponents import Policy
from echelon_env.opponents.policy import close_policy

Floats = NDArray[np.float32]

Recording = Mapping[int, Floats]
"""Seed of a battle -> the actions (T, M, A) float32 of a player's M mechs in its T decisions."""

RECORDED = "(recorded)"
"""Name of a player whose actions are recorded or played back. No opponent has it."""


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
    """A player that takes the recorded actions in the battles of the recording's seeds."""
    return Player(RECORDED, "scripted", lambda config, noise: _Playback([recording[seed] for seed in noise.seeds]))


class Recorder:
    """A policy that keeps the actions of another one as the engine plays them: non-finite entries are 0."""

    def __init__(self, noise: BattleNoise, policy: Policy) -> None:
        self._policy = policy
        self._shape = (len(noise.seeds), noise.team_size, ACTION_DIM)
        self._taken: list[Floats] = []  # (B, M, A) of each decision

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Reset the rows of the other policy."""
        self._policy.reset(mask)

    def close(self) -> None:
        """Close the other policy."""
        close_policy(self._policy)

    def act(self, observations: Floats) -> Floats:
        """The actions of the other policy."""
        actions = self._policy.act(observations)
        with np.errstate(over="ignore"):
            taken = np.array(actions, np.float32)
        taken[~np.isfinite(taken)] = 0.0
        self._taken.append(taken.reshape(self._shape))
        return actions

    def actions(self, battle: int, decisions: int) -> Floats:
        """The actions (T, M, A) of a battle of the batch in its first decisions."""
        return np.array([taken[battle] for taken in self._taken[:decisions]])


class _Playback:
    """A policy that takes recorded actions, and zeros after their end."""

    def __init__(self, recordings: list[Floats]) -> None:
        self._recordings, self._decision = recordings, 0

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Do nothing: every batch of battles has its own object."""

    def act(self, observations: Floats) -> Floats:
        """The next recorded actions (R, A)."""
        now, self._decision = self._decision, self._decision + 1
        return np.concatenate([each[now] if now < len(each) else np.zeros_like(each[0]) for each in self._recordings])
