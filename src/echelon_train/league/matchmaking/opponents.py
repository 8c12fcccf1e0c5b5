"""Opponents of a learner in a league, by prioritised fictitious self-play (PFSP).

PFSP and the roles of main agents and exploiters are AlphaStar's: Vinyals et al., "Grandmaster level in StarCraft II
using multi-agent reinforcement learning", 2019. That exploiters start from their victim's weights is not: from there a
best response takes minutes. `scheduling` plans rating runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.schema import ConfigError
from echelon_train.opponents.results import Results


def pfsp_weights(win_probabilities: Sequence[float]) -> NDArray[np.float64]:
    """Probabilities (N,) of opponents by prioritised fictitious self-play; uniform if all weights are 0.

    They are in proportion to (1 - x)^2 of the learner's win probability x: it meets most often what it loses to.
    """
    weights = (1.0 - np.asarray(win_probabilities, dtype=np.float64)) ** 2
    total = weights.sum()
    return np.asarray(weights / total if total > 0 else np.full(len(weights), 1 / max(1, len(weights))))


def main_agents_opponents(
    policies: Sequence[str], levels: Sequence[str], scripted: float, results: Mapping[str, Results]
) -> dict[str, float]:
    """The probability of each opponent of a main agent, whose share `scripted` of the battles is against levels.

    If there are no policies, or no levels, the others play all. Raises ConfigError if there are neither.
    """
    if not policies and not levels:
        raise ConfigError("a main agent needs opponents: the league has no other policy and no scripted level")
    scripted = 0.0 if not levels else scripted if policies else 1.0
    found: dict[str, float] = {}
    for names, share in ((policies, 1.0 - scripted), (levels, scripted)):
        if share:
            # without battles the win probability is 1/2: a new exploiter is met at once
            chances = pfsp_weights([results.get(name, Results()).win_probability for name in names])
            found |= zip(names, (share * chances).tolist(), strict=True)
    return found
