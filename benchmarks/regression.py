"""Has something become slower? Ratios to a calibration loop that is run in between, compared with those that were kept.

A ratio is the processor time of a measurement over the mean of the calibrations before and after it: other processes
that use the caches, and the clock's speed, change both. What differs between processors, above all the caches, is left
in it, so there is a baseline for each model. Everything that a replay does is in its processor time, resets too, which
the rows of the same names on the page leave out.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import calibration
from benchmarks.apis import batch_replay, engine_replay, parallel_replay, vector_replay
from benchmarks.machine import commit, processor
from benchmarks.recording import MAPS, record
from benchmarks.resets import MAP, POOL_RESET, beginnings
from benchmarks.tables import Cell, Table, read_document
from benchmarks.timing import spread, tell
from echelon_env import MapPool, make_config
from echelon_env.storage.atomic import write_json

BASELINE = Path(__file__).resolve().parent / "baseline.json"
SCHEMA = 2
DECISIONS = 480
ROUNDS = 9
SLOWER = 1.5
"""A ratio that has grown by this factor or more fails: rounds, machines of a model and versions vary less."""

VERDICT = "verdict"


def measure(rounds: int, decisions: int) -> dict[str, list[float]]:
    """Ratios of every measurement in every round."""
    calibrate = calibration.make()
    plays = measurements(decisions)
    for play in (*plays.values(), calibrate):
        play()  # compiles, makes the pools' maps
    ratios: dict[str, list[float]] = {name: [] for name in plays}
    before = _processor_seconds(calibrate)
    for _ in range(rounds):
        for name, play in plays.items():
            taken = _processor_seconds(play)
            after = _processor_seconds(calibrate)
            ratios[name].append(2 * taken / (before + after))
            before = after
    return ratios


def _processor_seconds(play: Callable[[], object]) -> float:
    """Seconds that this process computed, without those in which others had its core."""
    start = time.process_time()
    play()
    return time.process_time() - start


def measurements(decisions: int) -> dict[str, Callable[[], object]]:
    """What is watched: functions that do the same work every time."""
    plays: dict[str, Callable[[], object]] = {}
    for size, scenario in {"5 v 5": "skirmish", "10 v 10": "battle", "20 v 20": "company"}.items():
        config = make_config(scenario)
        maps = MapPool.generate(config, MAPS)
        batch = record(config, "novices", decisions, maps)
        plays[f"engine, {size}"] = engine_replay(batch)
        if scenario == "battle":
            plays[f"batch env, {size}"] = batch_replay(batch)
            plays[f"vector env, {size}"] = vector_replay(batch)
            for row, act in beginnings(scenario, maps).items():
                if row in (MAP, POOL_RESET):
                    plays[f"{row}, {size}"] = _times(act, 20 if row == MAP else 400)
        if scenario == "skirmish":
            plays[f"parallel env, {size}"] = parallel_replay(record(config, "novices", 4 * decisions, maps, battles=1))
    return plays


def _times(act: Callable[[int], object], times: int) -> Callable[[], None]:
    def play() -> None:
        for number in range(times):
            act(number)

    return play


def check(rounds: int = ROUNDS) -> tuple[Table, bool] | None:
    """Measure and compare with the baseline; the second value is whether nothing has become slower.

    None if there is no baseline of this processor. Raises ValueError when the file is none, or is not of these
    measurements.
    """
    kept = read_baselines(BASELINE).get(processor())
    if kept is None:
        return None
    tell(f"check: {rounds} rounds; about {5 * rounds} s")
    return compare(measure(rounds, DECISIONS), kept["ratios"])


def update_baseline(rounds: int = ROUNDS) -> None:
    """Keep what is measured now as the baseline of this processor. Raises OSError."""
    ratios = {name: round(statistics.median(values), 4) for name, values in measure(rounds, DECISIONS).items()}
    others = read_baselines(BASELINE) if BASELINE.exists() else {}
    baselines = {**others, processor(): {"commit": commit(), "ratios": ratios}}
    write_json(BASELINE, {"schema": SCHEMA, "baselines": baselines})


def compare(ratios: Mapping[str, list[float]], baseline: Mapping[str, float]) -> tuple[Table, bool]:
    """The table of ratios (each measurement's, one a round) beside the baseline's, and whether none is slower.

    Raises ValueError when they are not of the same measurements.
    """
    if set(ratios) != set(baseline):
        raise ValueError(
            f"baseline: expected ratios of {sorted(ratios)}, got {sorted(baseline)}; --update-baseline measures again"
        )
    rows: dict[str, tuple[Cell, ...]] = {}
    for name, values in ratios.items():
        now = statistics.median(values)
        factor = now / baseline[name]
        rows[name] = baseline[name], now, factor, 100 * spread(values), verdict(factor)
    columns = "baseline", "now", "factor", "rounds, ± %", VERDICT
    note = f"Slower: {SLOWER} x the baseline or more. Faster: the baseline over {SLOWER} or less."
    table = Table("check", "Regression check", "ratio", columns, rows, (note,))
    return table, all(table.cell(name, VERDICT) != "SLOWER" for name in rows)


def verdict(factor: float) -> str:
    """What a ratio over the baseline's says."""
    if factor >= SLOWER:
        return "SLOWER"
    return "faster" if factor <= 1 / SLOWER else "same"


def read_baselines(path: Path) -> dict[str, dict[str, Any]]:
    """The baselines of a file by processor. Raises ValueError, naming the file, when it holds none."""
    if not path.exists():
        raise ValueError(f"{path}: expected baselines, got no file; make it with --update-baseline")
    return read_document(path, SCHEMA, "baselines", _baselines)


def _baselines(data: Any) -> dict[str, dict[str, Any]]:
    return {str(name): _read_baseline(baseline) for name, baseline in data["baselines"].items()}


def _read_baseline(data: Any) -> dict[str, Any]:
    ratios = {str(name): float(value) for name, value in data["ratios"].items()}
    for name, ratio in ratios.items():
        if not (math.isfinite(ratio) and ratio > 0):
            raise ValueError(f"{name}: expected a finite ratio above 0, got {ratio}")
    return {"commit": data["commit"], "ratios": ratios}
