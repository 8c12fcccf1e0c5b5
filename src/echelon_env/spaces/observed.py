"""Masks of choices from observations alone, for players that do not see the environment."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.catalog import MOUNTS
from echelon_env.config.schema import ConfigError, nearest_name
from echelon_env.layout.actions import TARGET_CHOICES
from echelon_env.layout.observations import CLASS_NAMES, STREAMS, Self, class_columns
from echelon_env.networks.possible import TOLERANCE, Limit, action_limits, mask_needs
from echelon_env.opponents.policy import check_observations
from echelon_env.spaces.actions import CHOICE_PARTS, ActionFormat
from echelon_env.spaces.masks import MASK_SIZE, discrete_masks

_CLASSES = class_columns(Self)
_MOUNTS = len(MOUNTS)
_COOLDOWNS = slice(Self.COOLDOWN_PRIMARY, Self.COOLDOWN_PRIMARY + _MOUNTS)
_WEAPONS = slice(Self.HAS_PRIMARY, Self.HAS_PRIMARY + _MOUNTS)
_TARGETS = slice(STREAMS["contacts_mask"].start, STREAMS["contacts_mask"].start + TARGET_CHOICES)


class ObservedMasks:
    """Masks of a format of choices, as far as a mech's own observation shows what is possible.

    `action_masks` of an environment sees the engine. A player in an evaluation or an opponent sees observations only:
    a policy that is trained with these masks can act with them everywhere. They allow at least what the engine's allow;
    what they forbid has no effect. Dead mechs have only the neutral choices.

    Parameters
    ----------
    config
        The battle's configuration, such as ``env.config``.
    action_format
        ``"multi_discrete"`` or ``"discrete"``.

    Raises
    ------
    ConfigError
        For a format without choices.

    Examples
    --------
    >>> from echelon_env import make_config
    >>> from echelon_env.layout.observations import OBSERVATION_DIM
    >>> masks = ObservedMasks(make_config("duel"))
    >>> masks(np.zeros((3, OBSERVATION_DIM), np.float32)).sum(axis=1)  # dead mechs: one choice for each part
    array([12, 12, 12])
    """

    def __init__(self, config: BattleConfig, action_format: ActionFormat = "multi_discrete") -> None:
        if action_format not in CHOICE_PARTS:
            raise ConfigError(
                f"action_format: expected a format of choices, got {action_format!r}"
                f"{nearest_name(str(action_format), CHOICE_PARTS)}"
            )
        self._discrete = action_format == "discrete"
        self._limits = action_limits(config)
        self._needs = mask_needs(config.abilities.blocks_off)[:MASK_SIZE]

    def __call__(self, observations: NDArray[np.floating[Any]]) -> NDArray[np.bool_]:
        """Masks (R, K) bool for flat observations (R, D), as the environments give them: not normalised.

        K is the number of choices: `MASK_SIZE`, or that of the `DISCRETE_CHOICES`. Raises ValueError for others.
        """
        check_observations(observations, 0)
        masks = self._conditions(observations)[:, self._needs]
        return discrete_masks(masks).astype(np.bool_) if self._discrete else masks

    def _conditions(self, observations: NDArray[np.floating[Any]]) -> NDArray[np.bool_]:
        """(R, CONDITIONS): `echelon_env.networks.possible.find_conditions` of all rows."""
        own = observations[:, STREAMS["self"].part].astype(np.float64)
        classes = own[:, _CLASSES]
        bound = self._limits[np.where(classes.max(axis=1) > 0.0, classes.argmax(axis=1), len(CLASS_NAMES))]
        alive = own[:, Self.ALIVE] > 0.5
        asleep = (own[:, Self.SHUTDOWN] > 0.5) & (own[:, Self.HEAT] > bound[:, Limit.RESTART] + TOLERANCE)
        awake = alive & ~asleep
        able = awake & (own[:, Self.FALLEN] <= bound[:, Limit.FALLEN] + TOLERANCE)
        cool = own[:, _COOLDOWNS] <= bound[:, :_MOUNTS] + TOLERANCE
        fires = (own[:, _WEAPONS] > 0.5) & cool & able[:, None]
        single = [
            np.zeros_like(alive),
            np.ones_like(alive),
            alive,
            awake,
            able & (own[:, Self.LEGS] > bound[:, Limit.LEGS]),
            able & (bound[:, Limit.JETS] > 0.5),
            able & (bound[:, Limit.TURNS] > 0.5),
            awake & (own[:, Self.HAS_ELECTRONICS] > 0.5),
        ]
        return np.concatenate([np.stack(single, axis=1), fires, observations[:, _TARGETS] > 0.5], axis=1)
