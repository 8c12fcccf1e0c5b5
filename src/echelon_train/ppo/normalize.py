"""Normalisation of returns (PopArt) and of advantages."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from echelon_train.ppo import distributed

RATE = 0.05
"""Weight of the latest rollout in the running moments of returns."""

MIN_STD = 1e-4
"""Lower bound of the standard deviation of returns."""


class ReturnNormalizer(nn.Module):
    """PopArt: the critic predicts returns normalised by their running mean and standard deviation.

    When the moments change, the critic's last layer is rescaled so that its predictions of returns stay the same (van
    Hasselt et al., "Learning values across many orders of magnitude", 2016). The moments start from a guess, because
    the first rollouts' returns say little before episodes have ended.

    Parameters
    ----------
    initial_std
        Initial standard deviation; the initial mean is 0.
    """

    def __init__(self, initial_std: float = 1.0) -> None:
        super().__init__()
        self.mean: Tensor
        self.mean_square: Tensor
        self.register_buffer("mean", torch.zeros((), dtype=torch.float64))
        self.register_buffer("mean_square", torch.zeros((), dtype=torch.float64))
        self.reset(initial_std)

    def reset(self, std: float) -> None:
        """Set the standard deviation, and the mean to 0."""
        self.mean.zero_()
        self.mean_square.fill_(std**2)

    @property
    def std(self) -> Tensor:
        """() float64: running standard deviation of returns."""
        return (self.mean_square - self.mean**2).clamp_min(MIN_STD**2).sqrt()

    def normalize(self, returns: Tensor) -> Tensor:
        """Normalise returns of any shape."""
        return ((returns - self.mean) / self.std).to(returns.dtype)

    def denormalize(self, predictions: Tensor) -> Tensor:
        """The inverse of `normalize`."""
        return (predictions * self.std + self.mean).to(predictions.dtype)

    @torch.no_grad()
    def update(self, mean: Tensor, mean_square: Tensor, last_layer: nn.Linear) -> None:
        """Update the moments with those of a rollout's returns, () each, and rescale the critic's last layer.

        Moments that are not finite are ignored.
        """
        finite = torch.isfinite(mean) & torch.isfinite(mean_square)  # not a branch, for which a GPU would be waited for
        old_mean, old_std = self.mean.clone(), self.std
        for moment, new in ((self.mean, mean), (self.mean_square, mean_square)):
            moment.add_(RATE * (torch.where(finite, new.double(), moment) - moment))
        weight, bias = last_layer.weight, last_layer.bias
        weight.copy_(weight.double() * (old_std / self.std))
        bias.copy_((bias.double() * old_std + old_mean - self.mean) / self.std)


def normalize_advantages(advantages: Tensor, mask: Tensor) -> Tensor:
    """Normalise advantages (T, N) to mean 0 and standard deviation 1 over all processes, (T, N) float32.

    The moments are those of the samples in `mask` (T, N) bool that are finite; all samples are normalised by them.
    """
    exact = advantages.double()
    mask = mask & torch.isfinite(exact)
    kept = torch.where(mask, exact, 0.0)
    sums = torch.stack([mask.sum(dtype=torch.float64), kept.sum(), (kept**2).sum()])
    count, total, squares = distributed.all_reduce_sum(sums).unbind()
    mean = total / count.clamp_min(1.0)
    variance = (squares - count * mean**2).clamp_min(0.0) / (count - 1.0).clamp_min(1.0)
    return ((exact - mean) / (variance.sqrt() + 1e-8)).float()
