"""Time and memory of the commands of a league by its size: ``python -m benchmarks.league_size --help``.

The members of the simulated leagues join one after another and play the members before them. Their files hold no
policies and no battle is fought, but every row is one that `echelon league` could have written: `fsck` finds nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.special import expit

from benchmarks.tables import Cell, Table, as_markdown
from benchmarks.timing import tell
from echelon_env.evaluate.battle_totals import COUNTED
from echelon_env.evaluate.stamps import battle_hash
from echelon_env.networks.checkpoint import JSON_FILE, WEIGHTS_FILE
from echelon_train.config.train import battle_config
from echelon_train.league.ratings.glicko2 import SCALE
from echelon_train.league.store.database import writing
from echelon_train.league.store.members import Member, insert_member, member_folder, now
from echelon_train.league.store.periods import insert_period, next_period
from echelon_train.league.store.records import Row, config_document
from echelon_train.league.store.registry import League

SIZES = 50, 200, 1_000, 5_000
MOST_MATCHES = 100_000
MAPS = 10
ACTIVE = 24
"""Members that are not retired in the second league of a size."""

SPREAD = 300.0
"""Standard deviation of the strengths, points."""

_CLASSES = ("heavy", "medium", "light", "scout")

_OPEN = """
import resource, sys
from pathlib import Path
from echelon_env.cli import main
from echelon_train.league.store.registry import League
path, limit = sys.argv[1], int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
league = League.open(Path(path))
"""
_PROPOSE = """
from echelon_train.config.train import battle_config
from echelon_train.league.playing.runner import rating_run
class Executor:
    def run(self, path, jobs):
        sys.exit()
rating_run(
    league, battle_config("skirmish"), "skirmish",
    target_deviation=75, maps_per_match=10, max_matches=100_000, executor=Executor(),
)
"""
COMMANDS = {
    "close a period": "league.rate_matches()",
    "propose a period's matches": _PROPOSE,
    **{
        name: f"sys.exit(main(['league', *{name.split()[:1]}, path, *{name.split()[1:]}]))"
        for name in ("standings", "matrix", "history", "report --replays 0", "rebuild", "fsck")
    },
}
"""What is measured, each as a script in a process of its own, in this order."""


def create(path: Path, members: int, matches: int, active: int) -> None:
    """A league of that many members, of which the newest are active. The last period is not closed yet."""
    rng = np.random.default_rng(members)
    league = League.create(path)
    strengths = rng.normal(0, SPREAD / SCALE, members)
    strengths[0] = 0.0
    config = battle_config("skirmish")
    period = max(1, members // 2)
    joined = 1
    for start in range(0, matches, period):
        end = min(matches, start + period)
        with writing(path) as connection:
            connection.execute(
                "INSERT OR IGNORE INTO configs VALUES (?, ?)", (battle_hash(config), config_document(config))
            )
            while joined < max(2, members * min(1.0, 1.25 * end / matches)):
                joined += 1
                insert_member(connection, _member(path, joined), None)
            pairs = _pairs(rng, joined, end - start)
            chances = expit(strengths[pairs[:, 0]] - strengths[pairs[:, 1]])
            outcomes = np.sign(chances[:, None] - rng.random((len(pairs), 2 * MAPS))).astype(int)
            rows = _rows(rng, start, pairs, outcomes.tolist(), battle_hash(config))
            connection.executemany(f"INSERT INTO matches VALUES ({', '.join('?' * 13)})", rows)
            if end < matches:
                insert_period(connection, next_period(connection, league.settings))
    with writing(path) as connection:
        connection.execute("UPDATE members SET state = 'retired' WHERE id BETWEEN 2 AND ?", (members - active + 1,))
    league.rebuild()


def _pairs(rng: np.random.Generator, joined: int, count: int) -> np.ndarray:
    """Pairs (count, 2) of two places: a member and one of those that joined before it."""
    first = rng.integers(1, joined, count)
    return np.column_stack([first, (rng.random(count) * first).astype(int)])


def _member(path: Path, number: int) -> Member:
    weights, document = f"weights {number}".encode(), b"{}"
    first, second = (hashlib.sha256(content).hexdigest() for content in (weights, document))
    folder = member_folder(path, first)
    folder.mkdir()
    (folder / WEIGHTS_FILE).write_bytes(weights)
    (folder / JSON_FILE).write_bytes(document)
    origin = {"checkpoint": "/runs/main", "opponent": "novice"}
    return Member(number, f"past-{number - 1}", "past", "active", None, 1000 * number, first, second, now(), origin)


def _rows(
    rng: np.random.Generator, start: int, pairs: np.ndarray, outcomes: list[list[int]], config: str
) -> Iterator[tuple[object, ...]]:
    """Rows of the table of matches, of the size of real ones."""
    classes = [{name: dict.fromkeys(COUNTED, 1234.5678) for name in _CLASSES}] * 2
    hashes = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(MAPS)]
    for index, ((first, second), outcome) in enumerate(zip(pairs.tolist(), outcomes, strict=True), start + 1):
        seeds = (index * MAPS + np.arange(MAPS) + 2**62).tolist()
        battles = {
            "number": [*range(2 * MAPS)],
            "seed": [seed for seed in seeds for _ in range(2)],
            "map_hash": [each for each in hashes for _ in range(2)],
            "side": [0, 1] * MAPS,
            "reason": ["elimination"] * 2 * MAPS,
            "seconds": [24.25] * 2 * MAPS,
            "scores": [[10.741489085239083, 2.8125]] * 2 * MAPS,
            "survivors": [[2, 0]] * 2 * MAPS,
        }
        document = {"action_modes": ["sampled", "sampled"], "battles": battles, "classes": classes}
        names = ["novice" if place == 0 else f"past-{place}" for place in (first, second)]
        result, text = (json.dumps(each, sort_keys=True, separators=(",", ":")) for each in (outcome, document))
        beside = ('{"package": "0"}', "worker", now())
        row = Row(str(uuid.UUID(int=index)), names[0], names[1], None, "skirmish", config, result, text, *beside)
        content = row.content_sha256
        yield index, row.uuid, first + 1, second + 1, None, row.scenario, config, result, text, content, *beside


def measure(path: Path, script: str, limit: int) -> tuple[float, float] | None:
    """Processor seconds on one thread and peak memory in GB of a script that uses a league; None beyond the limit."""
    with tempfile.TemporaryFile() as output:
        command = [sys.executable, "-c", _OPEN + script, str(path), str(limit)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode == -signal.SIGKILL:
            return None
        if process.returncode:
            output.seek(max(0, output.tell() - 2000))
            raise RuntimeError(output.read().decode(errors="replace"))
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e6


def main() -> None:
    """Create the leagues, measure, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.league_size", description=__doc__)
    add = parser.add_argument
    add("--sizes", type=int, nargs="+", default=SIZES, metavar="N", help="numbers of members (default: %(default)s)")
    add("--folder", type=Path, help="where the leagues are kept, up to 4 GB (default: a temporary folder)")
    add("--limit", type=int, default=120, metavar="S", help="for a command, seconds (default: %(default)s)")
    add("--retired", action="store_true", help=f"all but {ACTIVE} members are retired")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        columns: dict[str, list[Cell]] = {name: [] for name in COMMANDS}
        for members in options.sizes:
            kept = folder / f"{members}{'-retired' * options.retired}"
            if not kept.exists():
                folder.mkdir(parents=True, exist_ok=True)
                create(kept, members, min(100 * members, MOST_MATCHES), ACTIVE if options.retired else members)
            path = Path(temporary) / "league"
            shutil.copytree(kept, path)
            for name, script in COMMANDS.items():
                found = measure(path, script, options.limit)
                shown = f"> {options.limit:g} s" if found is None else f"{found[0]:.1f} s, {found[1]:.1f} GB"
                tell(f"{members} members, {name}: {shown}")
                columns[name].append(shown)
            shutil.rmtree(path)
    sizes = tuple(f"{members:,}" for members in options.sizes)
    rows = {name: tuple(cells) for name, cells in columns.items()}
    print(as_markdown(Table("sizes", "Processor time and peak memory", "members", sizes, rows)))


if __name__ == "__main__":
    main()
