"""Battles without abilities have the same interface: spaces, shapes, masks that fit."""

import numpy as np
import pytest

import echelon_env
from echelon_env.spaces import MASK_SLICES, NEUTRAL_CHOICES
from oracles.configs import ALL_OFF

FORMATS = ("continuous", "dict", "multi_discrete", "discrete")


@pytest.mark.parametrize("action", FORMATS)
def test_spaces_and_shapes_are_the_same(action):
    full = echelon_env.parallel_env("skirmish", action=action)
    env = echelon_env.parallel_env("skirmish", action=action, abilities=ALL_OFF)
    observations, infos = env.reset(seed=1)
    for agent in env.agents:
        assert env.observation_space(agent) == full.observation_space(agent)
        assert env.action_space(agent) == full.action_space(agent)
        assert observations[agent] in full.observation_space(agent)
    assert env.state_space == full.state_space
    for _ in range(3):
        discrete = action.endswith("discrete")
        actions = {
            agent: env.action_space(agent).sample(*((infos[agent]["action_mask"],) if discrete else ()))
            for agent in env.agents
        }
        observations, _, _, _, infos = env.step(actions)
    assert {agent: each.shape for agent, each in observations.items()} == {
        agent: full.observation_space(agent).shape for agent in env.agents
    }


def test_masks_allow_only_the_neutral_choice_of_what_is_off():
    env = echelon_env.BattleBatchEnv("skirmish-open", 4, abilities=ALL_OFF, action="multi_discrete")
    full = echelon_env.BattleBatchEnv("skirmish-open", 4, action="multi_discrete")
    shown = {"target": 0, "electronics": 0, "display": 0}
    for each in (env, full):
        each.reset(seed=3)
    for _ in range(3):
        for part in shown:
            assert not env.action_masks()[..., MASK_SLICES[part]][..., 1:].any()
            shown[part] += int(full.action_masks()[..., MASK_SLICES[part]][..., 1:].sum())
        for each in (env, full):
            each.step(np.tile(NEUTRAL_CHOICES, (4, 10, 1)))
    assert min(shown.values()) > 0
