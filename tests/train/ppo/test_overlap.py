"""Updates beside the next rollout; test_resume.py resumes such a run, test_cuda_graphs.py has the part of the GPU."""

import pytest
import torch

from train.ppo.random_env import RandomVecEnv, make_model
from train.ppo.test_dense import NETWORKS, model_of


def vector(policy):
    return torch.cat([parameter.detach().flatten() for parameter in policy.parameters()])


def watched(model):
    """The weights before each update, and those of each rollout."""
    updated, collected = [], []
    run, begin = model.update.run, model.collector.begin

    def run_watched(*arguments):
        updated.append(vector(model._policy))
        return run(*arguments)

    def begin_watched(*arguments):
        begin(*arguments)
        collected.append(vector(model.collector.policy))

    model.update.run, model.collector.begin = run_watched, begin_watched
    return updated, collected


def test_a_rollout_has_the_weights_from_before_the_last_update():
    model = make_model(RandomVecEnv(), overlap=True)
    updated, collected = watched(model)
    model.learn(4 * model.n_steps * model.n_envs)
    assert len(updated) == len(collected) == 4
    assert not torch.equal(updated[0], updated[1])
    for rollout, expected in zip(collected, [updated[0], *updated], strict=False):
        assert torch.equal(rollout, expected)


def test_without_it_a_rollout_has_the_last_weights():
    model = make_model(RandomVecEnv())
    updated, collected = watched(model)
    model.learn(3 * model.n_steps * model.n_envs)
    assert all(torch.equal(*pair) for pair in zip(updated, collected, strict=True))


def test_new_weights_are_those_of_the_next_rollout():
    model, other = (make_model(RandomVecEnv(), overlap=True, seed=seed) for seed in (3, 4))
    model.learn(2 * model.n_steps * model.n_envs)
    model.reinitialize({name: tensor.clone() for name, tensor in other.policy.state_dict().items()})
    _, collected = watched(model)
    model.learn(model.n_steps * model.n_envs, reset_num_timesteps=False)
    assert torch.equal(collected[0], vector(other.policy))


@pytest.mark.parametrize("off", [frozenset(), frozenset({"jump"})])
def test_the_actor_has_the_settings_of_the_battle(off):
    model = model_of(NETWORKS["sets-shared"], overlap=True)
    model.policy._blocks_off = off
    model.policy.action_limits.fill_(0.5)
    model.learn(model.n_steps * model.n_envs)
    assert model.collector.policy is not model.policy
    assert model.collector.policy._blocks_off == off
    assert torch.equal(model.collector.policy.action_limits, model.policy.action_limits)
