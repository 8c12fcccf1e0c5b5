"""A second definition of the action's layout, and random distributions for tests."""

import math

import torch
from torch import Tensor

from echelon_env import BattleConfig
from echelon_env.layout.actions import BLOCKS
from echelon_env.layout.observations import OBSERVATION_DIM, STREAMS, Self
from echelon_env.networks.possible import action_limits
from echelon_env.networks.weights import PARAMETERS
from echelon_train.policy.action_masks import action_masks
from echelon_train.policy.distributions import HybridDistribution
from echelon_train.policy.raw_actions import RAW_DIM

MIN_STD, MAX_STD = 0.05, 2.0
NAMES = [block.name for block in BLOCKS]
NUMBERS = sum(len(block.entries) for block in BLOCKS if block.kind == "numbers")
FIRST_LOGIT = 2 * NUMBERS
LIMITS = torch.from_numpy(action_limits(BattleConfig()))


def raw_slices() -> dict[str, slice]:
    slices, start = {}, 0
    for block in BLOCKS:
        width = 1 if block.kind == "choice" else len(block.entries)
        slices[block.name], start = slice(start, start + width), start + width
    return slices


def kind_slices() -> dict[str, slice]:
    """Columns of each block among the blocks of its kind: means for numbers, entries of a mask for the others.

    The entries of numbers follow those of the others in a mask.
    """
    slices, starts = {}, {"numbers": 0, "discrete": 0}
    for kind in ("numbers", "switches", "choice"):
        for block in (each for each in BLOCKS if each.kind == kind):
            counter = "numbers" if kind == "numbers" else "discrete"
            width = block.choices if kind == "choice" else len(block.entries)
            slices[block.name] = slice(starts[counter], starts[counter] + width)
            starts[counter] += width
    return slices


RAW_SLICES, KIND_SLICES = raw_slices(), kind_slices()
NUMBER_COLUMNS = [
    *range(RAW_SLICES["motion"].start, RAW_SLICES["motion"].stop),
    *range(RAW_SLICES["comm"].start, RAW_SLICES["comm"].stop),
]


def shifted(part: slice, by: int) -> slice:
    return slice(part.start + by, part.stop + by)


def random_masks(rows: int, generator: torch.Generator) -> Tensor:
    observations = torch.randint(0, 2, (rows, OBSERVATION_DIM), generator=generator).float()
    observations[:, STREAMS["self"].start + Self.ALIVE] = 1.0
    return action_masks(observations, LIMITS)


def random_batch(rows: int = 64, scale: float = 1.5, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Random parameters and masks, and raw actions sampled from them; floats are float64."""
    generator = torch.Generator().manual_seed(seed)
    parameters = scale * torch.randn(rows, PARAMETERS, generator=generator, dtype=torch.float64)
    masks = random_masks(rows, generator)
    noise = torch.randn(rows, RAW_DIM, generator=generator, dtype=torch.float64)
    return parameters, masks, distribution_of(parameters, masks).sample(noise)


def distribution_of(parameters: Tensor, masks: Tensor) -> HybridDistribution:
    return HybridDistribution(parameters, masks, MIN_STD, MAX_STD)


def log_std(parameters: Tensor) -> Tensor:
    share = torch.sigmoid(parameters[:, NUMBERS : 2 * NUMBERS])
    return math.log(MIN_STD) * (1 - share) + math.log(MAX_STD) * share


def living_observations(rows: int) -> Tensor:
    """Observations (rows, D) of living mechs without equipment or contacts."""
    observations = torch.zeros(rows, OBSERVATION_DIM)
    observations[:, STREAMS["self"].start + Self.ALIVE] = 1.0
    return observations
