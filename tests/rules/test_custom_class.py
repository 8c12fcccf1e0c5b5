"""A custom mech class is an entry of the catalogue, and nothing else."""

from dataclasses import replace

import numpy as np
import pytest

from echelon_env import (
    BattleBatchEnv,
    BattleEngine,
    BattleEnv,
    BattleVectorEnv,
    ControlledBattles,
    env,
    make_config,
    parallel_env,
)
from echelon_env.config.catalog import DEFAULT_CATALOG, MEDIUM
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.layout.observations import (
    CLASS_NAMES,
    OBSERVATION_DIM,
    STREAMS,
    Unit,
    class_columns,
    feature_names,
    state_streams,
)

RAIDER = replace(MEDIUM, name="raider", top_speed=6.0, armour=90.0, primary="autocannon", special=None)
CONFIG = make_config(
    "skirmish-open",
    catalog=replace(DEFAULT_CATALOG, mech_classes=(*DEFAULT_CATALOG.mech_classes, RAIDER)),
    blue=("raider", "heavy"),
    red=("scout", "raider"),
    max_steps=4,
)
CLASSES_IN_ROWS = [
    i for i, name in enumerate(feature_names()) if name.endswith(tuple(f"is_{name}" for name in CLASS_NAMES))
]
"""Entries of an observation that hold a class."""


def test_a_custom_class_has_zeros_in_the_class_columns_and_the_observation_keeps_its_width():
    engine = BattleEngine(CONFIG)
    raider, heavy, _, enemy = engine.reset([0])[0]
    assert raider.shape == (OBSERVATION_DIM,)
    own = class_columns(STREAMS["self"].features)
    assert (raider[own].tolist(), heavy[own].tolist(), enemy[own].tolist()) == ([0] * 4, [0, 0, 0, 1], [0] * 4)
    assert [feature_names()[i] for i in CLASSES_IN_ROWS if raider[i] == 1] == [
        "contacts.0.is_scout",
        "squad.0.is_heavy",
    ]
    units = engine.global_state()[0][state_streams(4)["units"].part].reshape(4, -1)
    assert units[:, class_columns(Unit)].tolist() == [[0] * 4, [0, 0, 0, 1], [1, 0, 0, 0], [0] * 4]


def test_a_custom_class_has_its_top_speed_from_the_catalogue():
    engine = BattleEngine(CONFIG)
    engine.reset([0])
    for _ in range(4):
        engine.step(np.tile(np.eye(ACTION_DIM, dtype=np.float32)[0], (1, 4, 1)))  # full throttle
    speed = np.hypot(engine.state.mechs["vx"], engine.state.mechs["vy"])[0]
    assert speed[0] == pytest.approx(6.0)


def play_parallel():
    battle = parallel_env(CONFIG)
    battle.reset(seed=0)
    while battle.agents:
        yield battle.step({agent: battle.action_space(agent).sample() for agent in battle.agents})[0]


def play_aec():
    battle = env(CONFIG)
    battle.reset(seed=0)
    for agent in battle.agent_iter():
        observation, _, terminated, truncated, _ = battle.last()
        battle.step(None if terminated or truncated else battle.action_space(agent).sample())
        yield observation


def play_single():
    battle = BattleEnv(CONFIG, control="team", opponent="veteran")
    battle.reset(seed=0)
    over = False
    while not over:
        observation, _, terminated, truncated, _ = battle.step(battle.action_space.sample())
        over = terminated or truncated
        yield observation


def play_batch(battles):
    battles.reset(seed=0)
    for _ in range(CONFIG.max_steps):
        yield battles.step(battles.action_space.sample())[0]


def play_controlled():
    battles = ControlledBattles(CONFIG, 2, opponent="expert")
    battles.reset([0, 1])
    for _ in range(CONFIG.max_steps):
        yield battles.step(np.zeros((2, 2, ACTION_DIM), np.float32))[0]


@pytest.mark.parametrize(
    "play",
    [
        play_parallel,
        play_aec,
        play_single,
        lambda: play_batch(BattleVectorEnv(CONFIG, 2)),
        lambda: play_batch(BattleBatchEnv(CONFIG, 2)),
        play_controlled,
    ],
    ids=["parallel", "turns", "single", "vector", "batch", "controlled"],
)
def test_a_custom_class_plays_in_every_api(play):
    decisions = list(play())
    assert len(decisions) >= CONFIG.max_steps
    for observations in decisions:
        values = observations.values() if isinstance(observations, dict) else [observations]
        assert all(np.isfinite(value).all() for value in values)
