"""Complete battles between scripted teams, for tests that need eventful battles."""

import numpy as np

from echelon_env import BattleEngine, opponents

SIZES = ("duel", "skirmish", "battle", "company")
"""The scenarios of every biome on maps of the usual size, from 1 v 1 to 20 v 20."""


def scripted_actions(engine: BattleEngine, players: tuple[opponents.Policy, opponents.Policy]) -> np.ndarray:
    """Actions (B, M, A) of two scripted teams for the engine's present observations."""
    blue = len(engine.config.blue)
    actions = np.zeros((engine.num_battles, engine.num_mechs, engine.action_dim), np.float32)
    for player, rows in zip(players, (slice(0, blue), slice(blue, None)), strict=True):
        observations = engine.observations[:, rows]
        acted = player.act(observations.reshape(-1, engine.observation_dim))
        actions[:, rows] = acted.reshape(*observations.shape[:2], -1)
    return actions


def record_battle(engine: BattleEngine, seed: int) -> list[np.ndarray]:
    """Play one battle (B = 1) of novices against experts and return the actions (M, A) of every decision.

    Novices overheat and experts use smoke, so the battles cover most actions.
    """
    players = (opponents.make("novice", 0, "battle"), opponents.make("expert", 1, "battle"))
    engine.reset([seed])
    actions = []
    while not engine.battle_over[0]:
        decision = scripted_actions(engine, players)
        engine.step(decision)
        actions.append(decision[0])
    return actions
