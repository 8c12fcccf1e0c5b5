"""Recorded battles."""

import functools

import numpy as np

from echelon_env import BattleConfig, BattleEngine, make_config
from echelon_env.replays import Recorder, Replay
from oracles.configs import ALL_OFF

CONFIGS = {name: make_config(name) for name in ("duel", "skirmish", "battle", "company")}
CONFIGS["disabled"] = make_config("skirmish", abilities=ALL_OFF)
"""Battles whose pages are compared with the engine; in "disabled" all abilities are off."""


@functools.cache
def recorded(scenario: str | BattleConfig = "skirmish-open", decisions: int = 12, seed: int = 3) -> Replay:
    """A battle of random actions."""
    engine = BattleEngine(make_config(scenario, max_steps=decisions))
    rng = np.random.default_rng(seed)
    with Recorder(engine, ("left", "right")) as recorder:
        engine.reset([seed])
        while not engine.battle_over[0]:
            engine.step(rng.uniform(-1, 1, (1, engine.num_mechs, engine.action_dim)).astype(np.float32))
    return recorder.replays[0]
