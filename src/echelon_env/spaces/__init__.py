"""Observation and action formats: spaces, conversion, masks, descriptions and explanations."""

from echelon_env.layout.actions import BLOCKS
from echelon_env.layout.parts import PARTS
from echelon_env.spaces.actions import (
    DISCRETE_CHOICES,
    MULTI_DISCRETE_SIZES,
    NEUTRAL_CHOICES,
    ActionFormat,
    action_space,
    read_action,
)
from echelon_env.spaces.describe import ActionDescription, FeatureDescription, describe_action, describe_observation
from echelon_env.spaces.explain import ActionPart, explain_action
from echelon_env.spaces.masks import MASK_SIZE, MASK_SLICES, action_masks, split_mask
from echelon_env.spaces.observations import ObservationFormat, observation_space
from echelon_env.spaces.observed import ObservedMasks

__all__ = [
    "BLOCKS",
    "DISCRETE_CHOICES",
    "MASK_SIZE",
    "MASK_SLICES",
    "MULTI_DISCRETE_SIZES",
    "NEUTRAL_CHOICES",
    "PARTS",
    "ActionDescription",
    "ActionFormat",
    "ActionPart",
    "FeatureDescription",
    "ObservationFormat",
    "ObservedMasks",
    "action_masks",
    "action_space",
    "describe_action",
    "describe_observation",
    "explain_action",
    "observation_space",
    "read_action",
    "split_mask",
]
