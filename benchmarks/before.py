"""Echelon beside an earlier commit of its own, in turns: how its speed has changed."""

from __future__ import annotations

import contextlib
import io
import os
import statistics
import subprocess
import sys
import zipfile
from pathlib import Path

from benchmarks.apis import AEC_ENV, BATCH_ENV, ENGINE, PARALLEL_ENV, VECTOR_ENV
from benchmarks.machine import ROOT
from benchmarks.peers.environments import WHOLE, PeerError, run
from benchmarks.peers.section import SECONDS_A_TURN, Runner
from benchmarks.tables import Cell, Table
from benchmarks.timing import Effort, spread_note, tell
from echelon_env.storage.atomic import write_bytes

COMMIT = "c2ba804a5028a4563aa8ee9f90238aec10fecfd6"  # of 2026-11-24: the last one before the engine's latest rework
ROWS = {
    "engine, 16 battles of 5 v 5": ("skirmish", ENGINE, "novices"),
    "engine, 16 of 10 v 10": ("battle", ENGINE, "novices"),
    "engine, 16 of 20 v 20": ("company", ENGINE, "novices"),
    "batch env, 16 of 10 v 10": ("battle", BATCH_ENV, "novices"),
    "Gymnasium vector env, 16 of 10 v 10": ("battle", VECTOR_ENV, "novices"),
    "PettingZoo parallel env, 1 of 5 v 5": ("skirmish", PARALLEL_ENV, "novices"),
    "PettingZoo AEC, 1 of 5 v 5": ("skirmish", AEC_ENV, "novices"),
}
TURNS = 3
"""For each round of other sections: a turn is short, and these ratios are close to 1."""
BEFORE, NOW, RATIO, LOW, HIGH = "before", "now", "x", "x, lower quartile", "x, upper quartile"


def before(effort: Effort) -> list[Table]:
    """Live agent-steps per second of an earlier commit and of this one on the same battles, and their ratios."""
    rounds = TURNS * effort.rounds
    notes = [f"Before: commit {COMMIT[:10]}. The same battles between scripted novices, {rounds} rounds."]
    rows: dict[str, tuple[Cell, ...]] = {}
    rates: list[list[float]] = []
    try:
        trees = {BEFORE: tree_of(COMMIT, effort.peers), NOW: ROOT}
        for row, arguments in ROWS.items():
            tell(f"before: {row}, {rounds} rounds")
            found = _rates(trees, arguments, rounds)
            rates += found.values()
            ratios = [now / then for then, now in zip(found[BEFORE], found[NOW], strict=True)]
            low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
            rows[row] = statistics.median(found[BEFORE]), statistics.median(found[NOW]), middle, low, high
    except PeerError as error:
        notes.append(f"Not measured: {error}.")
    if rates:
        notes.insert(0, spread_note(rates))
    columns = BEFORE, NOW, RATIO, LOW, HIGH
    return [Table("before", "Beside an earlier commit", "live agent-steps/s", columns, rows, tuple(notes))]


def _rates(trees: dict[str, Path], arguments: tuple[str, ...], rounds: int) -> dict[str, list[float]]:
    """Rates of both source trees, round after round. Each runs the benchmark of its own time.

    Raises `PeerError` if one stops, or if their battles have other numbers of living mechs.
    """
    found: dict[str, list[float]] = {name: [] for name in trees}
    living: dict[str, float] = {}
    with contextlib.ExitStack() as stack:
        runners = {}
        for name, tree in trees.items():
            script = tree / "benchmarks" / "peers" / "runners" / "echelon.py"
            runners[name] = Runner([sys.executable, str(script), *arguments], _paths(tree))
            stack.callback(runners[name].close)
        for _ in range(rounds):
            for name, runner in runners.items():
                answer = runner.turn(SECONDS_A_TURN)
                found[name].append(answer["live_steps"] / answer["seconds"])
                living[name] = answer["live_steps"] / answer["steps"]  # of whole recordings
    if len(set(living.values())) > 1:
        raise PeerError(f"the battles differ: living mechs a battle {living}")
    return found


def tree_of(commit: str, directory: Path) -> Path:
    """The source tree of a commit with its machine code, made if it is not there.

    Raises `PeerError` where there is no such commit, as outside a clone, or its machine code cannot be built.
    """
    folder = directory / f"echelon-{commit[:10]}"
    if not (folder / WHOLE).exists():
        tell(f"before: building commit {commit[:10]}")
        archive = subprocess.run(["git", "archive", "--format=zip", commit], cwd=ROOT, capture_output=True)
        if archive.returncode:
            raise PeerError(f"git archive: {archive.stderr.decode(errors='replace').strip()}")
        folder.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(io.BytesIO(archive.stdout)) as files:
            files.extractall(folder)
        run([sys.executable, "-m", "native"], cwd=folder, env=_paths(folder))
        write_bytes(folder / WHOLE, commit.encode())
    return folder


def _paths(tree: Path) -> dict[str, str]:
    return dict(os.environ) | {"PYTHONPATH": str(tree / "src")}
