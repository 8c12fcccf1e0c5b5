"""Seeds of battles: training and evaluation use disjoint ranges.

The seed of a run or of an evaluation is any integer of at least 0. It is hashed into the range of its purpose. So no
choice of seeds lets a policy be evaluated on a map that it trained on.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from echelon_env.config.schema import ConfigError, check_seed
from echelon_env.engine.rng import episode_seed
from echelon_env.storage.reading import read_regular_file

TRAINING_SEEDS = range(2**62)
"""Seeds of battles for training."""

EVALUATION_SEEDS = range(2**62, 2**63)
"""Seeds of battles for evaluations."""

MAX_SEEDS = 10_000
"""Most seeds of a file."""

_MAX_BYTES = 1 << 20
_MAPS, _VALIDATION = 2**32, 2**32 + 1  # indices beyond those of any batch


def training_seed(run_seed: int, place: int, episode: int) -> int:
    """Seed of battle number `episode` at index `place` of the batch, in `TRAINING_SEEDS`.

    Raises ValueError for a run's seed below 0.
    """
    return TRAINING_SEEDS[_hash(_hash(run_seed, place), episode) % len(TRAINING_SEEDS)]


def training_map_seed(run_seed: int, number: int) -> int:
    """Seed of training map `number` of a run, in `TRAINING_SEEDS`.

    Raises ValueError for a run's seed below 0.
    """
    return training_seed(run_seed, _MAPS, number)


def evaluation_seed(seed: int, index: int) -> int:
    """Seed of map `index` of an evaluation, in `EVALUATION_SEEDS`.

    Raises ValueError for an evaluation's seed below 0.
    """
    return EVALUATION_SEEDS[_hash(seed, index) % len(EVALUATION_SEEDS)]


def validation_seed(run_seed: int) -> int:
    """Seed of the evaluations during a run, in [0, 2**64): a hash of the run's seed.

    So the validation maps, which may guide the choice of a run, differ from those of a later evaluation with the same
    seed. Raises ValueError for a run's seed below 0.
    """
    return _hash(run_seed, _VALIDATION)


def check_seeds(seeds: Iterable[int], allowed: range) -> None:
    """Raise ValueError if a seed is not an integer in [0, 2**64), or not in the range `allowed`."""
    for seed in map(check_seed, seeds):  # converts to int: `in` scans a range linearly for other integer types
        if seed not in allowed:
            reason = "; it is kept for evaluation" if seed in EVALUATION_SEEDS else ""
            if allowed == EVALUATION_SEEDS:
                reason = "; evaluation_seed(seed, index) makes one from small numbers"
            raise ValueError(f"seed {seed} is outside the allowed range [{allowed.start}, {allowed.stop}){reason}")


def read_seeds(path: str | os.PathLike[str]) -> tuple[int, ...]:
    """The seeds of an evaluation's maps from a text file: one on each line, in `EVALUATION_SEEDS`, all different.

    Empty lines, and lines that begin with ``#``, are skipped. Raises `ConfigError`, with the line, for anything else,
    for no seed or more than `MAX_SEEDS`, and for a file that cannot be read.
    """
    try:
        lines = read_regular_file(path, _MAX_BYTES).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ConfigError(f"seeds {str(path)!r}: is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"seeds {str(path)!r}: {getattr(error, 'strerror', error)}") from None
    found: dict[int, int] = {}  # seed -> line
    for number, line in enumerate(map(str.strip, lines), start=1):
        if not line or line.startswith("#"):
            continue
        seed = int(line) if line.isascii() and line.isdecimal() and len(line) <= 20 else -1
        if seed not in EVALUATION_SEEDS:
            lowest, highest = EVALUATION_SEEDS[0], EVALUATION_SEEDS[-1]
            raise ConfigError(
                f"{path}:{number}: expected a seed for evaluation, an integer from {lowest} to {highest}, got "
                f"{line[:40]!r}{'; smaller seeds are for training' if seed in TRAINING_SEEDS else ''}"
            )
        if seed in found:
            raise ConfigError(f"{path}:{number}: expected different seeds, got {seed} of line {found[seed]} again")
        found[seed] = number
    if not 1 <= len(found) <= MAX_SEEDS:
        raise ConfigError(f"seeds {str(path)!r}: expected 1 to {MAX_SEEDS:,}, got {len(found):,}")
    return tuple(found)


def _hash(seed: int, index: int) -> int:
    if seed < 0:
        raise ValueError(f"seed: expected an integer of at least 0, got {seed}")
    return episode_seed(seed % 2**64, index + 1)  # + 1 because `episode_seed` returns the seed itself for 0
