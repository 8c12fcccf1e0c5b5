"""Layouts: the indices of every observation and action entry, shared by kernels, spaces and docs."""

from echelon_env.layout.actions import ACTION_DIM, Action
from echelon_env.layout.observations import (
    OBSERVATION_DIM,
    STREAMS,
    Clock,
    Comm,
    Contact,
    EgoCell,
    Feature,
    Intel,
    Mask,
    Objective,
    Self,
    Squad,
    Stream,
    Unit,
    feature_names,
    observation_bounds,
    state_streams,
)

__all__ = [
    "ACTION_DIM",
    "OBSERVATION_DIM",
    "STREAMS",
    "Action",
    "Clock",
    "Comm",
    "Contact",
    "EgoCell",
    "Feature",
    "Intel",
    "Mask",
    "Objective",
    "Self",
    "Squad",
    "Stream",
    "Unit",
    "feature_names",
    "observation_bounds",
    "state_streams",
]
