"""Where the blocks of an action are, written down a second time, and distributions to test."""

import math

import torch
from torch import Tensor

from echelon_env.layout.observations import OBSERVATION_DIM, STREAMS, Self
from echelon_env.spaces.actions import BLOCKS
from echelon_train.policy.distributions import (
    PARAMETERS,
    RAW_DIM,
    HybridDistribution,
    action_masks,
)

MIN_STD, MAX_STD = 0.05, 2.0
NAMES = [block.name for block in BLOCKS]
NUMBERS = sum(len(block.entries) for block in BLOCKS if block.kind == "numbers")
LOGITS = 2 * NUMBERS


def raw_slices() -> dict[str, slice]:
    slices, start = {}, 0
    for block in BLOCKS:
        width = 1 if block.kind == "choice" else len(block.entries)
        slices[block.name], start = slice(start, start + width), start + width
    return slices


def kind_slices() -> dict[str, slice]:
    """For numbers their means, for the others their entries of a mask."""
    slices, starts = {}, {"numbers": 0, "discrete": 0}
    for kind in ("numbers", "switches", "choice"):
        for block in (each for each in BLOCKS if each.kind == kind):
            counter = "numbers" if kind == "numbers" else "discrete"
            width = block.choices if kind == "choice" else len(block.entries)
            slices[block.name] = slice(starts[counter], starts[counter] + width)
            starts[counter] += width
    return slices


RAW, PLACE = raw_slices(), kind_slices()
NUMBER_COLUMNS = [*range(RAW["motion"].start, RAW["motion"].stop), *range(RAW["comm"].start, RAW["comm"].stop)]


def moved(part: slice, by: int) -> slice:
    return slice(part.start + by, part.stop + by)


def random_masks(rows: int, generator: torch.Generator) -> Tensor:
    observations = torch.randint(0, 2, (rows, OBSERVATION_DIM), generator=generator).float()
    observations[:, STREAMS["self"].start + Self.ALIVE] = 1.0
    return action_masks(observations)


def batch(rows: int = 64, scale: float = 1.5, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Parameters, masks, and raw actions that were sampled, all of float64."""
    generator = torch.Generator().manual_seed(seed)
    parameters = scale * torch.randn(rows, PARAMETERS, generator=generator, dtype=torch.float64)
    masks = random_masks(rows, generator)
    noise = torch.randn(rows, RAW_DIM, generator=generator, dtype=torch.float64)
    return parameters, masks, make(parameters, masks).sample(noise)


def make(parameters: Tensor, masks: Tensor) -> HybridDistribution:
    return HybridDistribution(parameters, masks, MIN_STD, MAX_STD)


def log_std(parameters: Tensor) -> Tensor:
    share = torch.sigmoid(parameters[:, NUMBERS : 2 * NUMBERS])
    return math.log(MIN_STD) * (1 - share) + math.log(MAX_STD) * share


def living(rows: int) -> Tensor:
    """Observations of mechs that are alive and have nothing."""
    observations = torch.zeros(rows, OBSERVATION_DIM)
    observations[:, STREAMS["self"].start + Self.ALIVE] = 1.0
    return observations
