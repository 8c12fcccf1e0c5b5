"""Masks of discrete actions, as far as a mech's observation shows what is possible.

In an evaluation a player sees observations only, so a policy with masks trains with these, too.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.layout.actions import Action
from echelon_env.networks.possible import BY_KIND, MASKS, NUMBERS, OPTION_STARTS, action_limits
from echelon_env.spaces.actions import PARTS
from echelon_train.policy.action_masks import action_masks

_FIRST_NUMBER = MASKS - NUMBERS


def _columns() -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """For each choice of the multi-discrete format its column in the policy's masks, and whether it is neutral."""
    switches = [entry for block in BY_KIND["switches"] for entry in block.entries]
    numbers = [entry for block in BY_KIND["numbers"] for entry in block.entries]
    place: dict[Action, int] = {entry: column for column, entry in enumerate(switches)}
    place |= {entry: _FIRST_NUMBER + column for column, entry in enumerate(numbers)}
    columns, neutral = [], []
    for part in PARTS:
        for choice in range(len(part.values)):
            columns.append(OPTION_STARTS[part.name] + choice if part.name in OPTION_STARTS else place[part.entries[0]])
            neutral.append(choice == part.neutral)
    return np.array(columns), np.array(neutral)


_COLUMNS, _NEUTRAL = _columns()


class ChoiceMasks:
    """Masks of the multi-discrete format in the battles of a configuration."""

    def __init__(self, config: BattleConfig) -> None:
        self._limits = torch.from_numpy(action_limits(config))
        self._off = config.abilities.blocks_off

    def __call__(self, observations: NDArray[np.float32]) -> NDArray[np.bool_]:
        """(R, sum of choices) bool for observations (R, D)."""
        possible = action_masks(torch.as_tensor(observations), self._limits, off=self._off).numpy()
        return np.asarray(possible[:, _COLUMNS] | _NEUTRAL)
