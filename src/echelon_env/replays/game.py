"""A page in which a person drives a mech. Scripted levels and trained policies play the others, in the page itself."""

from __future__ import annotations

import functools
import gzip
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echelon_env.champions import policy_path
from echelon_env.config import plugins
from echelon_env.config.battle import BattleConfig
from echelon_env.config.opponent import CHAMPION, HandicapConfig, Opponent
from echelon_env.config.scenario import ScenarioLike, make_config
from echelon_env.config.schema import ConfigError, check_integer, nearest_name
from echelon_env.config.skill import LEVELS
from echelon_env.engine.core import BattleEngine
from echelon_env.engine.state import BLUE, RED, SCRATCH
from echelon_env.evaluate.networks import PolicyFactory
from echelon_env.evaluate.players import IDLE
from echelon_env.evaluate.seeds import evaluation_seed
from echelon_env.layout.parts import CHOICES
from echelon_env.networks.forward import SAMPLED, prepare_network
from echelon_env.opponents.knowledge import make_knowledge
from echelon_env.opponents.memory import MEMORY, PLAN, allocate_scratch
from echelon_env.replays.files import battle_header
from echelon_env.replays.page import fill_page
from echelon_env.replays.recorder import Recorder
from echelon_env.replays.world import Call, World
from echelon_env.storage.atomic import write_bytes
from echelon_env.storage.text import printable

NO_MECH = "none"
"""In place of a mech: the person watches."""

MAX_STARTS = 2**20
"""Battles of a game."""

_ALONE = np.zeros(1, np.int64)
"""The turn of kernels that no threads share."""


class Game:
    """Battles that a person plays in a browser, in one scenario against the same players.

    `opponent` and `teammate` play the other team and the rest of the person's own one: a scripted level,
    ``"champion"``, ``"idle"`` or ``"policy:PATH"``; the page can change the level of a scripted opponent. `mech` is
    the one to drive: an agent such as ``"blue_2"``, or a class for blue's first mech of it, by default blue's first
    mech; with ``"none"`` the battle is only watched. The maps and the players' random choices have the seed, at least
    0: the battles' seeds are those of an evaluation.

    Raises ConfigError for an unknown scenario, player or mech, and a handicap, which the page does not have;
    `CheckpointError` for a policy that cannot be read.
    """

    def __init__(
        self,
        scenario: ScenarioLike = "skirmish",
        *,
        opponent: str = "novice",
        teammate: str = "competent",
        mech: str | None = None,
        seed: int = 0,
    ) -> None:
        self._engine = engine = BattleEngine(make_config(scenario))
        self._seed = check_integer("seed", seed, 0)
        self._mech = _find_mech(engine, mech)
        blue = len(engine.config.blue)
        own = RED if self._mech >= blue else BLUE
        shared = _Shared(engine.config)
        names = (teammate, opponent) if own == BLUE else (opponent, teammate)
        keys = ("teammate", "opponent") if own == BLUE else ("opponent", "teammate")
        rows = slice(0, blue), slice(blue, None)
        self._players = [_make_player(engine, shared, *each) for each in zip(keys, names, rows, strict=True)]
        calls = {team: each.call for team, each in zip(("blue", "red"), self._players, strict=True) if each.call}
        self._other = BLUE if own == RED else RED
        levels = self._players[self._other].levels
        settings = {} if levels is None else {"level": levels}
        self._level = None if levels is None else int(levels[0])
        self._world = World(engine, [array for each in self._players for array in each.changing], calls, settings)
        shown = [printable(name) for name in names]
        if mech != NO_MECH:
            shown[own] = f"person and {shown[own]}" if engine.config.num_mechs > 2 else "person"
        blue_name, red_name = shown
        self.players = blue_name, red_name
        """Names of blue's and red's player, as in the replays that the page saves."""

    def start(self, number: int) -> bytes:
        """The start of battle `number`: a gzip stream of a line of JSON and of the first part of the memory.

        Raises ConfigError unless it is in [0, `MAX_STARTS`).
        """
        about = self._begin(number)
        return gzip.compress(json.dumps(about).encode() + b"\n" + self._world.start(), mtime=0)

    def page(self, maps: int = 10, *, loads: bool = False) -> str:
        """The text of a page with the first `maps` battles; one with `loads` gets the following from its server.

        Raises ConfigError for another number of maps than 1 to 1,000, and `BackendError` where there is no WebAssembly
        module of the present engine.
        """
        if check_integer("maps", maps) > 1_000:
            raise ConfigError(f"maps: expected at most 1,000, got {maps:,}")
        starts = [self.start(number) for number in range(1, maps)]
        level = {"level": self._level, "levels": None if self._level is None else [*LEVELS], "team": self._other}
        play = {"mech": self._mech, "loads": loads, "start": self._begin(0), **level}
        title = f"{' v '.join(self.players)} - Echelon"
        return fill_page(title, self._world.pack(play=play), starts=starts, loads=loads)

    def write(self, path: str | os.PathLike[str], maps: int = 10) -> None:
        """Write the page to a file that any browser opens, without a network. Raises OSError, and as `page`."""
        write_bytes(Path(path), self.page(maps).encode())

    def _begin(self, number: int) -> dict[str, Any]:
        """Begin a battle in the engine, and return what a page has to know of it."""
        if check_integer("number", number, 0) >= MAX_STARTS:
            raise ConfigError(f"number: expected a battle below {MAX_STARTS:,}, got {number}")
        seed = evaluation_seed(self._seed, number)
        for name in SCRATCH:  # what earlier battles left there is no part of this one
            array = getattr(self._engine.state, name)
            array[...] = np.zeros((), array.dtype)
        with Recorder(self._engine, self.players) as recorder:
            self._engine.reset([seed])
            header = battle_header(recorder.current())
        for team, player in enumerate(self._players):
            player.begin(seed, team)
        # JavaScript has no integers of 64 bits: the page completes the header as a text
        return {"number": number, "players": self.players, "header": json.dumps(header, allow_nan=False)}


class _PagePlayer(NamedTuple):
    """A team's player in a page."""

    call: Call | None  # of the kernel that writes the actions of its rows
    levels: NDArray[np.int64] | None  # of its rows, which the page may change
    changing: tuple[NDArray[Any], ...]  # the arrays that it changes
    begin: Callable[[int, int], None]  # prepares them for a battle, by its seed and the team


class _Shared:
    """Arguments of the kernels that act, which the players of a game share."""

    def __init__(self, config: BattleConfig) -> None:
        self._config = config
        self._networks: dict[str, tuple[Any, ...]] = {}

    @functools.cached_property
    def levels(self) -> tuple[Any, ...]:
        skills = np.concatenate([skill.record() for skill in LEVELS.values()])
        return make_knowledge(self._config), skills, allocate_scratch(), np.zeros(1, PLAN)

    def network(self, path: str) -> tuple[Any, ...]:
        if path not in self._networks:
            factory = plugins.checkpoint_player(path, 0).make
            assert isinstance(factory, PolicyFactory)
            self._networks[path] = *prepare_network(factory.network, self._config), SAMPLED
        return self._networks[path]


def _make_player(engine: BattleEngine, shared: _Shared, key: str, name: str, rows: slice) -> _PagePlayer:
    """The player of a name for rows of an engine."""
    observations, actions = engine.observations[0, rows], engine.actions[0, rows]
    if name == IDLE:
        return _PagePlayer(None, None, (), lambda seed, team: None)
    chosen = Opponent.parse(name, key).check_playable(key)
    if chosen.handicap != HandicapConfig():
        expected = f"a level, {CHAMPION!r}, {IDLE!r} or 'policy:PATH'"
        raise ConfigError(f"{key}: expected {expected}, got the handicap of '{chosen}'", key)
    path = policy_path(chosen, engine.config)
    if path is None:
        return _scripted(shared.levels, chosen.name, observations, actions)
    return _network(shared.network(path), observations, actions)


def _scripted(shared: tuple[Any, ...], level: str, observations: NDArray[Any], actions: NDArray[Any]) -> _PagePlayer:
    memories = np.zeros(len(observations), MEMORY)

    def begin(seed: int, team: int) -> None:
        memories[:] = np.zeros((), MEMORY)
        memories["seed"] = (seed + team) % 2**64

    levels = np.full(len(observations), [*LEVELS].index(level), np.int64)
    call = "act_rows", *shared, _ALONE, levels, observations, memories, actions, 0
    return _PagePlayer(call, levels, (memories,), begin)


def _network(shared: tuple[Any, ...], observations: NDArray[Any], actions: NDArray[Any]) -> _PagePlayer:
    count, width = len(observations), shared[0].gain.size
    memories, keys, numbers = np.zeros((count, 2, width)), np.zeros(count, np.uint64), np.zeros(count, np.int64)

    def begin(seed: int, team: int) -> None:
        memories[:], numbers[:] = 0.0, 0
        keys[:] = np.random.default_rng([seed, team]).integers(0, 2**64, count, np.uint64)

    outputs = np.zeros((count, CHOICES), np.float32), np.zeros((count, CHOICES), np.bool_)
    call = "act_by_network", *shared, _ALONE, observations, memories, keys, numbers, actions, *outputs, 0
    return _PagePlayer(call, None, (memories, keys, numbers), begin)


def _find_mech(engine: BattleEngine, mech: str | None) -> int:
    """The row of a mech by an agent's name or by blue's class; -1 for none."""
    config = engine.config
    if mech == NO_MECH:
        return -1
    agents = [f"blue_{i}" for i in range(len(config.blue))] + [f"red_{i}" for i in range(len(config.red))]
    known: Mapping[str, int] = {name: config.blue.index(name) for name in config.blue} | {
        name: row for row, name in enumerate(agents)
    }
    if mech is None:
        return 0
    if mech not in known:
        raise ConfigError(f"unknown mech {mech!r}{nearest_name(str(mech), [*known, NO_MECH])}")
    return known[mech]
