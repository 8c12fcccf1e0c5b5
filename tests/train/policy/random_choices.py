"""Random distributions for tests."""

import torch
from torch import Tensor

from echelon_env import BattleConfig
from echelon_env.layout.observations import OBSERVATION_DIM, STREAMS, Self
from echelon_env.layout.parts import CHOICES, NUM_PARTS
from echelon_env.networks.possible import action_limits
from echelon_train.policy.action_masks import action_masks
from echelon_train.policy.distributions import ActionDistribution

LIMITS = torch.from_numpy(action_limits(BattleConfig()))


def random_masks(rows: int, generator: torch.Generator) -> Tensor:
    observations = torch.randint(0, 2, (rows, OBSERVATION_DIM), generator=generator).float()
    observations[:, STREAMS["self"].start + Self.ALIVE] = 1.0
    return action_masks(observations, LIMITS)


def random_batch(rows: int = 64, scale: float = 1.5, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Random logits and masks, and choices sampled from them; floats are float64."""
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(rows, CHOICES, generator=generator, dtype=torch.float64)
    masks = random_masks(rows, generator)
    noise = torch.rand(rows, NUM_PARTS, generator=generator, dtype=torch.float64)
    return logits, masks, ActionDistribution(logits, masks).sample(noise)


def living_observations(rows: int) -> Tensor:
    """Observations (rows, D) of living mechs without equipment or contacts."""
    observations = torch.zeros(rows, OBSERVATION_DIM)
    observations[:, STREAMS["self"].start + Self.ALIVE] = 1.0
    return observations
