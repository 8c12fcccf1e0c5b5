"""Normalisation of observations to mean 0 and variance 1 by running moments."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from echelon_env.layout.observations import OBSERVATION_DIM, STREAMS, Self, feature_names
from echelon_env.networks.weights import CLIP, TABLES, VARIANCE_EPSILON, observation_features

ZERO_IF_DEAD = ("self", "ego_map", "battle_map")
"""Streams that are all zeros for dead mechs."""


class ObservationNormalizer(nn.Module):
    """Normalises observations (R, OBSERVATION_DIM) by the running mean and variance of each feature.

    All rows of a table and all cells of a map share the moments of a feature, so that the rows of a set stay
    interchangeable. The moments count living mechs and filled rows only. Features without a unit are not normalised:
    masks, other indicators, shares, unit vectors and messages are of order 1 already, and the content of messages
    drifts with the policy.

    The moments are a persistent float64 buffer, so `state_dict` contains them.
    """

    running: Tensor
    feature: Tensor
    scaled: Tensor

    def __init__(self) -> None:
        super().__init__()
        feature, scaled = map(torch.from_numpy, observation_features())
        self.register_buffer("running", torch.zeros(3, len(scaled), dtype=torch.float64))
        self.register_buffer("feature", feature, persistent=False)
        self.register_buffer("scaled", scaled, persistent=False)

    @torch.no_grad()
    def update(self, observations: Tensor, living: Tensor) -> None:
        """Update the moments with observations.

        Parameters
        ----------
        observations
            (R, OBSERVATION_DIM), as the environment returns them.
        living
            (R,) bool: the rows that count.

        Raises
        ------
        ValueError
            For other shapes and for entries that are not finite; the moments are then unchanged.
        """
        _check(observations)
        if living.shape != observations.shape[:1] or living.dtype != torch.bool:
            raise ValueError(
                f"expected living as ({len(observations)},) bool, got {tuple(living.shape)} {living.dtype}"
            )
        if not torch.isfinite(observations.sum()):  # 30 times as fast as testing each entry
            for row, entry in (~torch.isfinite(observations)).nonzero().tolist():
                raise ValueError(
                    f"expected finite observations, got {observations[row, entry].item()} for "
                    f"{feature_names()[entry]} in row {row}"
                )
        seen = observations[living]
        self.merge(torch.cat([_moments(_rows(seen, name)) for name in STREAMS], 1))

    def moments(self) -> Tensor:
        """Count, mean, and sum of squared deviations of every feature: (3, features) float64, a copy."""
        return self.running.clone()

    @torch.no_grad()
    def merge(self, moments: Tensor) -> None:
        """Merge the `moments` of another normaliser, such as that of another process, into these.

        Chan, Golub and LeVeque 1979, "Updating formulae and a pairwise algorithm for computing sample variances".
        Raises ValueError for another shape and for moments that are not finite.
        """
        if moments.shape != self.running.shape:
            raise ValueError(f"expected moments of shape {tuple(self.running.shape)}, got {tuple(moments.shape)}")
        if not torch.isfinite(moments).all():
            raise ValueError("expected finite moments, got some that are not")
        (count, mean, squares), (more, other, others) = self.running, moments.to(self.running)
        total = count + more
        share = more / total.clamp_min(1.0)
        delta = other - mean
        self.running.copy_(
            torch.stack([total, mean + delta * share, squares + others + delta.square() * count * share])
        )

    def forward(self, observations: Tensor) -> Tensor:
        """Normalise observations (R, OBSERVATION_DIM) and clip them to +-`CLIP`; empty rows become exactly 0.

        A feature without any counted value is not normalised. Raises ValueError for another shape.
        """
        _check(observations)
        count, mean, squares = self.running
        known = self.scaled & (count > 0)
        deviation = (squares / count.clamp_min(1.0) + VARIANCE_EPSILON).sqrt()
        scale = torch.where(known, 1.0 / deviation, 1.0)
        shift = torch.where(known, -mean / deviation, 0.0)
        scale, shift = (each[self.feature].to(observations.dtype) for each in (scale, shift))
        normal = torch.addcmul(shift, observations, scale).clamp(-CLIP, CLIP)
        dead = observations[:, STREAMS["self"].start + Self.ALIVE, None] <= 0.5
        for name, stream in STREAMS.items():
            part = normal[:, stream.part]
            if name in TABLES:
                rows = part.view(len(normal), stream.rows, stream.row_width)
                rows.masked_fill_(observations[:, STREAMS[f"{name}_mask"].part, None] <= 0.5, 0.0)
            elif name in ZERO_IF_DEAD:
                part.masked_fill_(dead, 0.0)
        return normal


def _rows(observations: Tensor, name: str) -> Tensor:
    """All filled rows (n, F) of a stream in observations (R, D) of living mechs; each cell of a map is a row."""
    stream = STREAMS[name]
    rows = observations[:, stream.part].reshape(-1, stream.row_width)
    return rows[observations[:, STREAMS[f"{name}_mask"].part].flatten() > 0.5] if name in TABLES else rows


def _moments(rows: Tensor) -> Tensor:
    """Count, mean, and sum of squared deviations of each column of rows (n, F): (3, F) float64."""
    if not len(rows):
        return rows.new_zeros(3, rows.shape[1], dtype=torch.float64)
    precise = rows.double()
    mean = precise.mean(0)
    return torch.stack([torch.full_like(mean, len(rows)), mean, (precise - mean).square_().sum(0)])


def _check(observations: Tensor) -> None:
    if observations.ndim != 2 or observations.shape[1] != OBSERVATION_DIM:
        raise ValueError(f"expected observations (R, {OBSERVATION_DIM}), got {tuple(observations.shape)}")
