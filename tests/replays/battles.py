"""Recorded battles."""

import functools

import numpy as np

from echelon_env import BattleEngine, make_config
from echelon_env.replays import Recorder, Replay


@functools.cache
def recorded(scenario: str = "skirmish-open", decisions: int = 12, seed: int = 3) -> Replay:
    """A battle of random actions."""
    engine = BattleEngine(make_config(scenario, max_steps=decisions))
    rng = np.random.default_rng(seed)
    with Recorder(engine, ("left", "right")) as recorder:
        engine.reset([seed])
        while not engine.battle_over[0]:
            engine.step(rng.uniform(-1, 1, (1, engine.num_mechs, engine.action_dim)).astype(np.float32))
    return recorder.replays[0]
