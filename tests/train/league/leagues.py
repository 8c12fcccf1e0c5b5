"""Leagues whose members never trained, and matches that were never played."""

import os
import sqlite3
import subprocess
import sys
import uuid
from collections import Counter
from pathlib import Path

from echelon_env.evaluate import Battle, Match
from echelon_env.evaluate.stamps import battle_hash
from echelon_env.networks.config import NetworkConfig
from echelon_train.checkpoints.checkpoint import Checkpoint, save_checkpoint
from echelon_train.league.store.database import DATABASE_FILE
from echelon_train.league.store.records import PlayedMatch
from echelon_train.league.store.registry import League
from echelon_train.policy import build_policy
from train.small import NETWORK, small_battle

CONFIG = small_battle()
CONFIG_HASH = battle_hash(CONFIG)
STAMP = {"package": "0", "engine_hash": "0" * 64}
_TESTS = Path(__file__).resolve().parents[2]
SCRIPT_ENVIRONMENT = {
    **os.environ, "PYTHONPATH": os.pathsep.join([str(_TESTS.parent / "src"), str(_TESTS)]), "OMP_NUM_THREADS": "1"
}  # fmt: skip
"""For processes where this module can be imported as ``train.league.leagues``, and the package is this checkout's."""


def saved(folder: Path, seed: int = 0, steps: int = 100, network: NetworkConfig = NETWORK) -> Path:
    """A checkpoint in a new folder; the same seed gives the same weights."""
    save_checkpoint(folder, Checkpoint(build_policy(network, seed), network, CONFIG, "novice", steps))
    return folder


def number_uuid(number: int) -> str:
    return str(uuid.UUID(int=number))


def match(first: str, second: str, outcomes: tuple[int, ...] = (1, 1), number: int = 0, padding: int = 0) -> Match:
    """A match with the given outcomes, two per map. Its statistics have `padding` more characters."""
    battles = tuple(
        Battle(n, 100 * number + n // 2, f"{number}-{n // 2}", n % 2, outcome, "elimination", 1.5, (0.25, 0.0), (1, 0))
        for n, outcome in enumerate(outcomes)
    )
    classes = {"medium": {"mechs": 1.0, "hits": 0.1 + 0.2}}, {"x" * padding: {"mechs": 1.0}}
    return Match("duel", first, second, ("sampled", "scripted"), battles, classes, CONFIG_HASH)


def played(first: str, second: str, outcomes: tuple[int, ...] = (1, 1), number: int = 0, **more: object) -> PlayedMatch:
    """The same as played, with a uuid that follows from its number."""
    padding = more.pop("padding", 0)
    fields = {"worker": "a", "stamp": STAMP, "played_at": "2026-01-01T00:00:00+00:00", **more}
    return PlayedMatch(number_uuid(number), match(first, second, outcomes, number, padding), CONFIG, **fields)


def small_league(folder: Path) -> League:
    """The scripted novice, trivial and expert, with six maps played and one period closed."""
    league = League.create(folder)
    league.add_scripted("trivial")
    league.add_scripted("expert")
    league.record(played("novice", "trivial", (1, 1, 0, 1), 1))
    league.record(played("expert", "novice", (1, 0, 1, -1), 2))
    league.record(played("trivial", "expert", (-1, -1, -1, 0), 3))
    league.rate_matches()
    return league


def watch_opponents(patch) -> Counter[str]:
    """Opponent -> how many mechs' battles against it end from now on, in runs that train in a league."""
    from echelon_train.runs.callbacks import LeagueCallback  # imports torch, which most processes do not need

    counts: Counter[str] = Counter()
    noted = LeagueCallback._on_step

    def on_step(self: LeagueCallback) -> bool:
        counts.update(info["opponent"] for info in self.locals["infos"] if "opponent" in info)
        return noted(self)

    patch.setattr(LeagueCallback, "_on_step", on_step)
    return counts


def uuids(league: League) -> list[str]:
    return [each.uuid for each in league.matches()]


def script_command(script: str) -> list[str]:
    return [sys.executable, "-c", script]


def run_script(script: str, *arguments: object, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run a script in a new process."""
    command = [*prefix, *script_command(script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=SCRIPT_ENVIRONMENT, check=False)


def change(league, *statements):
    """Change a database without its triggers, and restore them."""
    connection = sqlite3.connect(league.path / DATABASE_FILE, isolation_level=None)
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    for _, sql in triggers:
        connection.execute(sql)
    connection.close()
