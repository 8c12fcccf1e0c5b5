"""From import to the first step, and what a battle takes of memory."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks.apis import SIZES
from benchmarks.tables import Table
from benchmarks.timing import Effort, tell
from echelon_env import BattleEngine, backend

LIBRARY, WARM, COLD = "library", "Numba, warm kernel cache", "Numba, cold kernel cache"
ALL = "all arrays"
FIRST_STEP = (
    "import numpy as np, echelon_env; engine = echelon_env.BattleEngine('battle'); engine.reset([0]);"
    "engine.step(np.zeros((1, engine.num_mechs, engine.action_dim), np.float32))"
)
LARGEST = 4
BYTES = 1e6


def startup(effort: Effort) -> list[Table]:
    """Seconds to the first step in a new process, and megabytes a battle.

    Raises RuntimeError when such a process fails.
    """
    tell("startup" if effort.quick else "startup: compiles")
    return [_first_step(effort), _memory()]


def _first_step(effort: Effort) -> Table:
    if backend().name != "library":
        raise RuntimeError(f"there is no library to measure: {backend().reason}")
    rounds = 1 if effort.quick else effort.rounds
    library = statistics.median(_process_seconds({"ECHELON_JIT": "0"}) for _ in range(rounds))
    warm = cold = None
    if not effort.quick:
        with tempfile.TemporaryDirectory() as empty:
            jit = {"ECHELON_JIT": "1", "ECHELON_CACHE_DIR": empty}
            cold = _process_seconds(jit)
            warm = statistics.median(_process_seconds(jit) for _ in range(rounds))
    rows = {LIBRARY: (library,), WARM: (warm,), COLD: (cold,)}
    return Table("first step", "A new process: import to the first step of 10 v 10", "s", ("seconds",), rows)


def _process_seconds(variables: dict[str, str]) -> float:
    start = time.perf_counter()
    command = [sys.executable, "-c", FIRST_STEP]
    result = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if result.returncode:
        last = result.stderr.strip().splitlines()[-1:] or [f"status {result.returncode}"]
        raise RuntimeError(f"a new process did not come to its first step: {last[0]}")
    return seconds


def _memory() -> Table:
    sizes: dict[str, dict[str, int]] = {}
    for size, scenario in SIZES.items():
        engine = BattleEngine(scenario)
        arrays = engine.state._asdict() | engine.out._asdict() | {"observations": engine.observations}
        sizes[size] = {name: array.nbytes for name, array in arrays.items()}
    biggest = sorted(sizes["10 v 10"], key=lambda name: -sizes["10 v 10"][name])[:LARGEST]
    rows = {ALL: tuple(sum(arrays.values()) / BYTES for arrays in sizes.values())}
    rows |= {name: tuple(arrays[name] / BYTES for arrays in sizes.values()) for name in biggest}
    note = f"State and outputs of one battle, and the {LARGEST} largest arrays of 10 v 10."
    return Table("memory", "Memory of one battle", "MB", tuple(sizes), rows, (note,))
