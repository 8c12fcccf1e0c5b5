"""Observation formats: the flat vector, and a dict of its streams."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Literal, get_args

import numpy as np
from gymnasium.spaces import Box, Dict, Space
from numpy.typing import NDArray

from echelon_env.config.schema import ConfigError, nearest_name
from echelon_env.layout.observations import STREAMS, Stream, observation_bounds

ObservationFormat = Literal["flat", "dict"]
"""``"flat"``: one vector. ``"dict"``: an array for each stream, whose concatenation is the vector."""


def check_observation_format(observation_format: object) -> None:
    """Raise `ConfigError` if there is no such observation format."""
    if observation_format not in get_args(ObservationFormat):
        hint = nearest_name(str(observation_format), get_args(ObservationFormat))
        raise ConfigError(f"unknown observation {observation_format!r}{hint}")


def observation_space(
    observation_format: ObservationFormat, mechs: int | None = None, mask: Space[Any] | None = None
) -> Space[Any]:
    """The space of one agent's observations.

    Parameters
    ----------
    observation_format
        ``"flat"``: a Box of (D,) float32. ``"dict"``: a Dict of Boxes, float32, of the streams' shapes
        (`observations.Stream.shape`) in the order of the flat vector, so that `gymnasium.spaces.flatten` gives it.
    mechs
        None for one mech. For a team of n mechs as one agent: ``"flat"`` concatenates their vectors, (n * D,), and
        ``"dict"`` has a leading axis in every stream, (n, ...).
    mask
        Space of the agent's action mask, if the observation also holds it: then it is a Dict of ``"observation"`` and
        ``"action_mask"``.

    Raises
    ------
    ConfigError
        If there is no such format.
    """
    check_observation_format(observation_format)
    low, high = observation_bounds()
    team = () if mechs is None else (mechs,)
    space: Space[Any]
    if observation_format == "flat":
        space = Box(np.tile(low, mechs or 1), np.tile(high, mechs or 1), dtype=np.float32)
    else:
        space = Dict(OrderedDict((name, _box(stream, low, high, team)) for name, stream in STREAMS.items()))
    if mask is None:
        return space
    return Dict(OrderedDict([("observation", space), ("action_mask", mask)]))


def _box(stream: Stream, low: NDArray[np.float32], high: NDArray[np.float32], team: tuple[int, ...]) -> Space[Any]:
    shape = (*team, *stream.shape)
    lowest, highest = low[stream.part].reshape(stream.shape), high[stream.part].reshape(stream.shape)
    return Box(np.broadcast_to(lowest, shape), np.broadcast_to(highest, shape), dtype=np.float32)


def split_streams(vectors: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
    """Views of vectors (..., D) in the dict format: for each stream (..., *shape)."""
    return {
        name: vectors[..., stream.part].reshape(*vectors.shape[:-1], *stream.shape) for name, stream in STREAMS.items()
    }
