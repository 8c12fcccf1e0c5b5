"""A recorded battle. It holds what the battle follows from, and simulates the battle again."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import ConfigError
from echelon_env.engine.core import BattleEngine
from echelon_env.engine.state import SCRATCH

VOXELS = ("voxels", "voxel_damage")
"""Arrays of the state for each voxel of the map. They are most of the state."""

DIGEST_BYTES = 32
MAX_STATE_BYTES = 1 << 26
MAX_WORK_BYTES = 1 << 33
"""Of the states of all decisions together."""


class ReplayError(ConfigError):
    """A replay is damaged, of another version or not a replay, or its battle cannot be simulated here."""


@dataclass(frozen=True, eq=False)
class Replay:
    """A battle from its start, with every action."""

    config: BattleConfig
    """The rules, with the reward weights at the start."""
    seed: int
    map_seed: int
    map_hash: str
    """Content hash of the map."""
    players: tuple[str, str]
    """Names of blue's and red's player."""
    actions: NDArray[np.float32]
    """(T, M, A): the actions of all mechs in each decision, as the engine got them."""
    digests: NDArray[np.uint8]
    """(T + 1, 32): `state_digest` at the start and after each decision."""
    voxels_digest: str | None
    """`voxels_digest` after the last decision; None if it was recorded to a reset, and not to the battle's end."""
    stamp: Mapping[str, str]
    """`echelon_env.evaluate.stamp` of the recording process."""

    def __repr__(self) -> str:
        blue, red = self.players
        return f"Replay({blue!r} v {red!r}, {self.decisions} decisions, seed {self.seed}, map {self.map_seed})"

    @property
    def decisions(self) -> int:
        """Number of decisions T."""
        return len(self.actions)

    def play(self) -> Generator[BattleEngine, None, None]:
        """Simulate the battle. Yield its engine at the start and after each decision.

        The same object is yielded each time; it must only be read. Raises ReplayError if this version of the generator
        makes another map from the seed, and if the battle would need more memory or time than `MAX_STATE_BYTES` and
        `MAX_WORK_BYTES`.
        """
        try:
            engine = BattleEngine(self.config)
        except ConfigError as error:
            raise ReplayError(str(error)) from None
        size = sum(array.nbytes for array in engine.state)  # nothing has been written to it yet
        if size > MAX_STATE_BYTES or size * (self.decisions + 1) > MAX_WORK_BYTES:
            raise ReplayError(f"{self.decisions} decisions with {size:,} bytes of state are too many")
        engine.reset([self.seed], map_seeds=[self.map_seed])
        found = engine.terrain(0).content_hash
        if found != self.map_hash:
            raise ReplayError(
                f"the map of seed {self.map_seed} has the content hash {found[:12]}, in the replay {self.map_hash[:12]}"
            )
        yield engine
        for actions in self.actions:
            engine.step(actions[None])
            yield engine

    def first_difference(self) -> int | None:
        """Simulate the battle and compare its state with the recorded one at the start and after every decision.

        Returns
        -------
        None if all states are equal; else the number of decisions after which the state differs first (0: at the
        start). If only the voxels differ at the end of the battle, it is the number of the last decision.

        Raises
        ------
        ReplayError
            As `play`.
        """
        states = enumerate(self.play())
        return next((decision for decision, engine in states if not self.matches(engine, decision)), None)

    def matches(self, engine: BattleEngine, decision: int) -> bool:
        """Whether an engine that `play` yields has the recorded state after `decision` decisions."""
        if state_digest(engine, 0) != self.digests[decision].tobytes():
            return False
        over = bool(engine.state.battles["over"][0])
        return decision < self.decisions or self.voxels_digest == (voxels_digest(engine, 0) if over else None)


def state_digest(engine: BattleEngine, battle: int) -> bytes:
    """SHA-256 of the battle's state: of the bytes of all arrays of `State` but `SCRATCH` and `VOXELS`, in order."""
    digest = hashlib.sha256()
    for name, array in engine.state._asdict().items():
        if name not in SCRATCH and name not in VOXELS:
            digest.update(array[battle].tobytes())
    return digest.digest()


def voxels_digest(engine: BattleEngine, battle: int) -> str:
    """SHA-256 of the battle's `VOXELS`, in order, in hexadecimal digits."""
    digest = hashlib.sha256()
    for name in VOXELS:
        digest.update(getattr(engine.state, name)[battle].tobytes())
    return digest.hexdigest()
