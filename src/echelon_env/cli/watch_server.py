"""The server of `echelon play --watch`: a page with a battle of a run's newest checkpoint, which follows the run.

Battles have numbers from 1, each another map. The server has the newest one; what it answers, after the token::

    (nothing)   the page of the newest battle, a replay; its world has the battle's number N as "live"
    next/N      {"number": M, "decisions": D}: the newest battle, and how many decisions its checkpoint was trained for;
                if M is still N, the server makes another one
    alive       as that of a game: a page is open as long as this request

The server makes a battle when it finds another checkpoint, and when a page has shown the newest battle to its end and
asks for ``next/N``. That page asks again until the number differs from its own, and then loads itself again. Asking
twice makes one battle.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from echelon_env.cli.dispatch import fail
from echelon_env.cli.play_server import HTML, PageServer
from echelon_env.config import plugins
from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import ConfigError
from echelon_env.evaluate.players import Player
from echelon_env.evaluate.seeds import evaluation_seed
from echelon_env.networks.checkpoint import LAST_FILE, RUN_FILE
from echelon_env.replays.matches import record_battle
from echelon_env.replays.page import make_page

INTERVAL = 5.0
"""s between looks for another checkpoint."""
_NEXT = re.compile(r"next/(\d{1,9})")


class LiveBattle(NamedTuple):
    """A battle that the server has."""

    number: int
    decisions: int
    """That its checkpoint was trained for."""
    page: bytes


class LiveBattles:
    """Battles of a run's newest checkpoint, which is blue, against an opponent.

    They are in the scenario `config`, or else in that in which the checkpoint was trained. Raises ConfigError for a run
    without a checkpoint, `BackendError` where there is no WebAssembly module of the present engine, and as
    `record_battle`.
    """

    def __init__(self, run: str, opponent: Player, config: BattleConfig | None, seed: int) -> None:
        self._run, self._opponent, self._config, self._seed = run, opponent, config, seed
        self._player, self._reported = self._read(), ""
        self.newest = self._make(1)
        """The newest battle that is ready."""

    def look(self, *, another: bool = False) -> None:
        """Make a battle if the run has another checkpoint, or if `another` battle is wanted in any case.

        Errors are reported and not raised: a checkpoint that has gone meanwhile is replaced by the run.
        """
        with self._reports():
            player = self._read()
            another |= player.identity != self._player.identity
            self._player = player
        if another:
            with self._reports():
                self.newest = self._make(self.newest.number + 1)

    def _read(self) -> Player:
        player: Player = plugins.checkpoint_player(self._run, self._seed)
        return player

    def _make(self, number: int) -> LiveBattle:
        decisions = int(self._player.identity["steps"])
        name = f"{os.path.basename(os.path.abspath(self._run))} at {decisions:,} decisions"
        player, config = dataclasses.replace(self._player, name=name), self._config or self._player.battle
        assert config is not None  # a checkpoint has one
        replay = record_battle(player, self._opponent, config, seed=evaluation_seed(self._seed, number))
        return LiveBattle(number, decisions, make_page(replay, live=number).encode())

    @contextlib.contextmanager
    def _reports(self) -> Iterator[None]:
        """Report an error of the block, unless it is the one that was reported last."""
        try:
            yield
        except (ConfigError, OSError) as error:
            if str(error) != self._reported:
                self._reported = str(error)
                fail(self._reported)


class WatchServer(PageServer):
    """Serves the newest of a run's battles, and has it look for another checkpoint. Raises as `PageServer`."""

    def __init__(self, battles: LiveBattles, port: int = 0) -> None:
        self._battles = battles
        self._shown = 0  # the last battle after which a page has asked for another one
        self._wake = threading.Event()
        super().__init__(port)
        threading.Thread(target=self._look, daemon=True).start()

    def contents(self, path: str) -> tuple[bytes, str] | None:
        """As `PageServer.contents`."""
        newest = self._battles.newest
        if path == "":
            return newest.page, HTML
        if found := _NEXT.fullmatch(path):
            if int(found[1]) == newest.number:
                self._shown = newest.number
                self._wake.set()
        else:
            return None
        return json.dumps({"number": newest.number, "decisions": newest.decisions}).encode(), "application/json"

    def server_close(self) -> None:
        """As that of `PageServer`. The thread that looks for checkpoints ends, too."""
        super().server_close()
        self._wake.set()

    def _look(self) -> None:
        while True:
            self._wake.wait(INTERVAL)
            self._wake.clear()
            if self.ending.is_set():
                return
            self._battles.look(another=self._shown == self._battles.newest.number)


def wait_for_checkpoint(run: str) -> None:
    """Wait while a run that has begun has no checkpoint yet."""
    if _begins(Path(run)):
        print(f"Waiting for the first checkpoint of {run}", flush=True)
    while _begins(Path(run)):
        time.sleep(INTERVAL)


def _begins(run: Path) -> bool:
    return (run / RUN_FILE).exists() and not (run / LAST_FILE).exists()
