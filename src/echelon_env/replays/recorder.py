"""The recorder of battles, for every environment class."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.schema import ConfigError, check_integer
from echelon_env.engine.core import BattleEngine
from echelon_env.evaluate.stamps import stamp
from echelon_env.replays.replay import DIGEST_BYTES, Replay, state_digest, voxels_digest

MAX_NAME_BYTES = 1024
"""Of a player's name."""


class Recorder:
    """Records the battles of an environment that start from now on, or have started but taken no decision yet.

    Parameters
    ----------
    environment
        An environment of this package, also in wrappers, `ControlledBattles`, or a `BattleEngine`.
    players
        Names of blue's and red's player.
    keep
        Number of replays in `replays`. The oldest are dropped.

    Raises
    ------
    TypeError
        For an environment without an engine.
    ConfigError
        For names that are not two printable texts of at most `MAX_NAME_BYTES` bytes.

    Notes
    -----
    A battle is recorded from its reset to its end, or to the next reset if that comes first. In a vector environment
    with `AutoresetMode.NEXT_STEP` an episode that ends before its battle (by `max_cycles`, or with a pilot's death) has
    one more decision there: that of the step which ignores its actions. A battle whose state is
    restored, or whose reward weights are changed in between, is not recorded.

    Examples
    --------
    >>> import echelon_env
    >>> env = echelon_env.parallel_env("duel-open", max_steps=3)
    >>> with Recorder(env, players=("left", "right")) as recorder:
    ...     _ = env.reset(seed=1)
    ...     while env.agents:
    ...         _ = env.step({agent: env.action_space(agent).sample() for agent in env.agents})
    >>> (replay,) = recorder.replays
    >>> replay.decisions, replay.first_difference()
    (3, None)
    """

    def __init__(self, environment: Any, players: Sequence[str] = ("blue", "red"), *, keep: int = 100) -> None:
        self.players = check_players(players)
        self.replays: deque[Replay] = deque(maxlen=check_integer("keep", keep, 0))
        """The finished replays, newest last."""
        self._stamp = stamp()
        self._engine = engine = _engine_of(environment)
        begun = np.flatnonzero(engine.was_reset & (engine.state.battles["step_count"] == 0))
        self._started = {battle: _Start(engine, battle) for battle in begun.tolist()}
        engine.observers.append(self)

    def current(self, battle: int = 0) -> Replay:
        """The replay so far of a battle in progress. Raises ConfigError if it is not recorded."""
        if battle not in self._started:
            raise ConfigError(
                f"battle {battle}: is not recorded: expected one that has been reset since, and is not over"
            )
        return self._replay(self._started[battle], None)

    def close(self) -> None:
        """Stop recording. Battles in progress are dropped."""
        self._started.clear()
        if self in self._engine.observers:
            self._engine.observers.remove(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def on_reset(self, battles: Sequence[int]) -> None:
        """As an `EngineObserver`: recordings of these battles end, and others begin."""
        cut = [self._started.pop(battle, None) for battle in battles]
        self._started |= {battle: _Start(self._engine, battle) for battle in battles}
        self.replays.extend(self._replay(start, None) for start in cut if start is not None and start.actions)

    def on_step(self, actions: NDArray[np.float32]) -> None:
        """As an `EngineObserver`: record a decision."""
        for battle, start in self._started.items():
            start.actions.append(actions[battle].copy())
            start.digests.append(state_digest(self._engine, battle))
        over = [battle for battle in self._started if self._engine.state.battles["over"][battle]]
        for battle in over:
            start, voxels = self._started.pop(battle), voxels_digest(self._engine, battle)
            self.replays.append(self._replay(start, voxels))

    def on_change(self) -> None:
        """As an `EngineObserver`: battles in progress are not recorded any more."""
        self._started.clear()

    def _replay(self, start: _Start, voxels: str | None) -> Replay:
        shape = len(start.actions), self._engine.num_mechs, self._engine.action_dim
        return Replay(
            config=start.config,
            seed=start.seed,
            map_seed=start.map_seed,
            map_hash=start.map_hash,
            players=self.players,
            actions=np.array(start.actions, np.float32).reshape(shape),
            digests=np.frombuffer(b"".join(start.digests), np.uint8).reshape(-1, DIGEST_BYTES),
            voxels_digest=voxels,
            stamp=self._stamp,
        )


class _Start:
    """How a battle in progress began, and its course so far."""

    def __init__(self, engine: BattleEngine, battle: int) -> None:
        self.config = engine.config
        self.seed = int(engine.state.battles["seed"][battle])
        self.map_seed = int(engine.state.battles["map_seed"][battle])
        self.map_hash = engine.terrain(battle).content_hash
        self.actions: list[NDArray[np.float32]] = []
        self.digests = [state_digest(engine, battle)]


def _engine_of(environment: Any) -> BattleEngine:
    """The engine of an environment, or TypeError."""
    if isinstance(environment, BattleEngine):
        return environment
    engine = getattr(getattr(environment, "unwrapped", environment), "engine", None)
    if not isinstance(engine, BattleEngine):
        raise TypeError(f"environment: expected an environment of echelon_env, got {type(environment).__name__}")
    return engine


def check_players(players: Sequence[str]) -> tuple[str, str]:
    """Return the names of blue's and red's player. Raises ConfigError unless they are two short printable texts."""
    if isinstance(players, str) or len(players) != 2 or not all(isinstance(name, str) for name in players):
        raise ConfigError(f"players: expected the names of blue's and red's player, got {players!r}")
    for name in players:
        if len(name.encode(errors="surrogatepass")) > MAX_NAME_BYTES:
            raise ConfigError(f"players: expected names of at most {MAX_NAME_BYTES} bytes, got {name[:40]!r}...")
        if not name.isprintable():
            raise ConfigError(f"players: expected printable names, got {name[:40]!r}")
    blue, red = players
    return blue, red
