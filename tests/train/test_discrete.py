"""Battles with choices as actions, and the masked algorithm that they are for."""

import numpy as np
import pytest
from gymnasium.spaces import Discrete, MultiDiscrete
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import VecNormalize

from echelon_env import ConfigError
from echelon_env.spaces import ObservedMasks, read_action
from echelon_train import BattleVecEnv, DiscreteActions
from train.small import small_battle


def battles(**options) -> BattleVecEnv:
    return BattleVecEnv(small_battle("skirmish", max_steps=6), 2, opponent="trivial", seed=3, **options)


@pytest.mark.parametrize(("action_format", "space"), [("multi_discrete", MultiDiscrete), ("discrete", Discrete)])
def test_a_step_is_that_of_the_same_vectors(action_format, space):
    env, plain = DiscreteActions(battles(), action_format), battles()
    assert isinstance(env.action_space, space)
    env.action_space.seed(1)
    np.testing.assert_array_equal(env.reset(), plain.reset())
    for _ in range(8):  # beyond the end of the battles
        chosen = np.array([env.action_space.sample() for _ in range(env.num_envs)])
        step = env.step(chosen)
        expected = plain.step(read_action(action_format, chosen, batch=env.num_envs))
        for got, wanted in zip(step[:3], expected[:3], strict=True):
            np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(env.action_masks(), ObservedMasks(plain.battles.config, action_format)(step[0]))


def test_a_masked_policy_chooses_only_what_is_possible():
    env = DiscreteActions(battles())
    model = MaskablePPO("MlpPolicy", VecNormalize(env, norm_obs=False), n_steps=8, batch_size=40, n_epochs=1, seed=1)
    model.learn(160)
    masks = env.action_masks()
    assert not masks.all()
    chosen, _ = model.predict(env._observations, action_masks=masks)
    places = np.cumsum([0, *env.action_space.nvec[:-1]])
    assert masks[np.arange(env.num_envs)[:, None], places + chosen].all()
    assert len(env.env_method("action_masks", indices=[0, 3])) == 2


def test_errors():
    with pytest.raises(ConfigError, match="without a global state"):
        DiscreteActions(battles(central=True))
    with pytest.raises(ConfigError, match="expected a format of choices, got 'dict'"):
        DiscreteActions(battles(), "dict")
    env = DiscreteActions(battles())
    env.reset()
    with pytest.raises(ValueError, match="actions: expected 0 to 6 at"):
        env.step(np.full((env.num_envs, 12), 7))
