"""Seeds of battles: training and evaluation use disjoint ranges.

The seed of a run or of an evaluation is any integer of at least 0. It is hashed into the range of its purpose. So no
choice of seeds lets a policy be evaluated on a map that it trained on.
"""

from __future__ import annotations

from collections.abc import Iterable

from echelon_env.config.schema import check_seed
from echelon_env.engine.rng import episode_seed

TRAINING_SEEDS = range(2**62)
"""Seeds of battles for training."""

EVALUATION_SEEDS = range(2**62, 2**63)
"""Seeds of battles for evaluations."""

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
            raise ValueError(f"seed {seed} is outside the allowed range [{allowed.start}, {allowed.stop}){reason}")


def _hash(seed: int, index: int) -> int:
    if seed < 0:
        raise ValueError(f"seed: expected an integer of at least 0, got {seed}")
    return episode_seed(seed % 2**64, index + 1)  # + 1 because `episode_seed` returns the seed itself for 0
