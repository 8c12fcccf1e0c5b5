"""A task that needs memory: the recurrent policy solves it, a policy whose state is reset does not."""

import pytest
import torch
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from echelon_train.ppo import EchelonRecurrentPPO
from support.remember import Remember

# 5: episodes begin inside chunks, and chunks inside episodes
DELAY, ROWS, BUDGET = 5, 32, 12_288


def envs():
    return DummyVecEnv([lambda: Remember(DELAY)] * ROWS)


def keep_no_state(model):
    """Let the LSTM begin from zero at every step, in rollouts, updates and evaluation: it is then feed-forward."""
    original = type(model.policy)._process_sequence

    def forgetful(features, states, starts, lstm):
        return original(features, tuple(torch.zeros_like(state) for state in states), starts, lstm)

    model.policy._process_sequence = forgetful


def mean_reward(seed, forget):
    """Of a trained policy's mode: 1 at best, and 0 by chance."""
    model = EchelonRecurrentPPO(
        "MlpLstmPolicy", envs(), n_steps=24, chunk=1 if forget else 12, batch_size=192, n_epochs=3,
        learning_rate=3e-3, ent_coef=0.01, gamma=0.99, policy_kwargs={"net_arch": [16], "lstm_hidden_size": 16},
        seed=seed, device="cpu",
    )  # fmt: skip
    if forget:
        keep_no_state(model)
    model.learn(BUDGET)
    env = VecMonitor(envs())
    env.seed(99)
    return evaluate_policy(model, env, n_eval_episodes=200)[0]


@pytest.mark.long
def test_only_a_policy_with_memory_solves_the_task():
    assert mean_reward(seed=3, forget=False) > 0.9
    # same network and samples; the mean of 200 random rewards of +-1 has a standard error of 0.07
    assert abs(mean_reward(seed=3, forget=True)) < 0.3
