"""Measure the trainer on a GPU, a part at a time: ``python -m benchmarks.gpu PART``.

Every part is a command of its own and takes at most 5 minutes; all of them together take at most 15. Results are
appended to a file as they come. ``page`` writes docs/results/gpu.md from the published file. Nothing is
downloaded. Without a
GPU a part runs its own logic on the CPU at small sizes, and measures nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks.gpu.engine import engine
from benchmarks.gpu.opponents import opponents
from benchmarks.gpu.page import PUBLISHED, write_page
from benchmarks.gpu.results import PARTS, Entry, Run, append
from benchmarks.gpu.runs import gpus, learning, processes
from benchmarks.gpu.setting import Setting, describe
from benchmarks.gpu.speed import speed

MEASURE: dict[str, tuple[Callable[[Setting], None], float]] = {
    "speed": (speed, 265.0),
    "opponents": (opponents, 105.0),
    "engine": (engine, 90.0),
    "processes": (processes, 90.0),
    "gpus": (gpus, 90.0),
    "learning": (learning, 250.0),
}
"""Every part, and the seconds after which it is stopped, without its set-up."""
UNMEASURED = "no GPU: the part ran at small sizes on the CPU; nothing was measured"
assert tuple(MEASURE) == PARTS


def main(arguments: list[str] | None = None) -> int:
    """Run a part; 2 for a file of results that cannot be used."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=(*PARTS, "page"), help="what to measure, or page")
    parser.add_argument("--out", type=Path, default=PUBLISHED, help="file of results (default: %(default)s)")
    parser.add_argument("--device", default=None, help="cuda:N (default: the first GPU, if there is one)")
    parser.add_argument("--seconds", type=float, default=None, help="after which a part is stopped (default: its own)")
    options = parser.parse_args(arguments)
    try:
        if options.part == "page":
            write_page(options.out)
            return 0
        device = torch.device(options.device or ("cuda:0" if torch.cuda.is_available() else "cpu"))
        return run(options.part, device, options.out, options.seconds)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def run(part: str, device: torch.device, out: Path, seconds: float | None = None) -> int:
    """Run a part, with its results in the file; 1 if a case failed."""
    measured, machine = device.type == "cuda", describe(device)
    if not measured:
        out = out.with_name("gpu-unmeasured.json") if out == PUBLISHED else out
    entries: list[Entry] = []

    def keep(entry: Entry) -> None:
        entries.append(entry)
        append(out, Run(part, measured, machine, entries))
        shown = ", ".join(f"{name} {_short(value)}" for name, value in entry.numbers.items())
        print(f"{part}: {entry.name}: {entry.error or shown}", flush=True)

    measure, usual = MEASURE[part]
    append(out, Run(part, measured, machine, entries))  # a file that cannot be written fails here
    measure(Setting(device, keep, usual if seconds is None else seconds))
    if not measured:
        print(UNMEASURED)
    return 1 if any(entry.error for entry in entries) else 0


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, (int, float)) else "a curve"


if __name__ == "__main__":
    sys.exit(main())
