"""Observations and global states recorded in battles."""

import functools

import numpy as np
import torch
from torch import Tensor

from echelon_env import BattleEngine, opponents


@functools.cache
def battle_data(scenario: str = "battle") -> tuple[Tensor, Tensor, Tensor]:
    """Observations (R, D) of battles between novices, the living rows (R,) bool, and global states (R', S)."""
    engine = BattleEngine(scenario, 3, dead_agents="persist", time_limit="terminate")
    player = opponents.make("novice", 1, engine.config)
    observations, over = engine.reset(np.arange(3)), np.ones(3, np.bool_)
    player.reset(np.repeat(over, engine.num_mechs))
    seen, living, states = [], [], []
    for step in range(150):
        rows = observations.reshape(-1, engine.observation_dim)
        if step % 15 == 14:
            seen.append(torch.tensor(rows))
            living.append(torch.tensor(np.asarray(engine.alive, np.bool_).reshape(-1)))
            states.append(torch.tensor(engine.global_state(0)))
        observations, *_ = engine.step(player.act(rows).reshape(3, engine.num_mechs, -1))
    return torch.cat(seen), torch.cat(living), torch.cat(states)
