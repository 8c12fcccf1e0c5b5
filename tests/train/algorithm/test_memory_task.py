"""A task that needs a memory: the recurrent policy solves it, one that forgets does not."""

import torch
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from .toys import Remember, model_of

# 5: episodes begin inside chunks, and chunks inside episodes
DELAY, ROWS, BUDGET = 5, 32, 12_288


def reward_after_learning(forget: bool) -> float:
    """Mean reward of the greedy policy, 1 at best; without a memory 0 in the mean."""
    model = model_of(
        DummyVecEnv([lambda: Remember(DELAY)] * ROWS),
        steps=24,
        chunk=1 if forget else 12,
        batch_size=192,
        n_epochs=3,
        learning_rate=3e-3,
        ent_coef=0.01,
        gamma=0.99,
        policy_kwargs={"net_arch": [16], "lstm_hidden_size": 16},
    )
    if forget:
        keep_no_state(model)
    model.learn(BUDGET)
    env = VecMonitor(DummyVecEnv([lambda: Remember(DELAY)] * ROWS))
    env.seed(99)
    return evaluate_policy(model, env, n_eval_episodes=200)[0]


def keep_no_state(model) -> None:
    """Let the LSTM begin from zero at every step, in rollouts, updates and evaluation: it is then feed-forward."""
    original = type(model.policy)._process_sequence

    def forgetful(features, states, starts, lstm):
        return original(features, tuple(torch.zeros_like(state) for state in states), starts, lstm)

    model.policy._process_sequence = forgetful


def test_only_what_remembers_solves_it():
    assert reward_after_learning(forget=False) > 0.9
    # the same network and samples; 200 episodes of +-1 with even chances stray by 0.07
    assert abs(reward_after_learning(forget=True)) < 0.3
