"""Updates beside the next rollout; test_resume.py resumes such a run, test_cuda_graphs.py has the part of the GPU."""

import pytest
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger

from echelon_train.config.ppo import PPOConfig
from echelon_train.ppo.collector import Collector
from echelon_train.runs.run import Run
from train.ppo.random_env import RandomVecEnv, make_model
from train.ppo.test_dense import NETWORKS, model_of
from train.resuming import QUIET
from train.small import small_run


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


class Restart(BaseCallback):
    """Sets other weights before the third rollout, as a league does."""

    def __init__(self, weights):
        super().__init__()
        self.weights, self.rollouts = weights, 0

    def _on_rollout_start(self):
        self.rollouts += 1
        if self.rollouts == 3:
            self.model.reinitialize(self.weights)

    def _on_step(self):
        return True


@pytest.mark.parametrize("mode", ["off", "graphs"])
def test_new_weights_are_those_of_the_next_rollout(mode):
    model, other = (
        model_of(NETWORKS["sets-shared"], overlap=True, dense=True, compile_mode=mode, seed=seed) for seed in (3, 4)
    )
    weights = {name: tensor.clone() for name, tensor in other.policy.state_dict().items()}
    _, collected = watched(model)
    model.learn(4 * model.n_steps * model.n_envs, callback=Restart(weights))
    assert torch.equal(collected[2], vector(other.policy))
    assert torch.equal(collected[3], vector(other.policy)), "one update late"
    steps = {int(state["step"]) for state in model.policy.optimizer.state.values()}
    assert steps == {(len(collected) - 2) * model.n_epochs}, "its momentum began anew"


def test_an_update_is_not_waited_for_when_a_rollout_starts(monkeypatch, tmp_path):
    """In a run, whose callbacks look at much."""
    unread = []
    begin = Collector.begin

    def watch(collector, *arguments):
        unread.append(algorithm._unread is not None)
        begin(collector, *arguments)

    ppo = PPOConfig(n_steps=16, batch_size=16, n_epochs=1, overlap=True)
    config = small_run(ppo=ppo, steps=200, checkpoint_every=0)
    run = Run(config, tmp_path / "run", "cpu", QUIET, None, None)
    algorithm = run.model
    algorithm._overlap.ends_later = True  # as on a GPU
    monkeypatch.setattr(Collector, "begin", watch)
    run.learn(Logger(None, []))
    assert unread[0] is False and unread[1:] and all(unread[1:])


@pytest.mark.parametrize("off", [frozenset(), frozenset({"jump"})])
def test_the_actor_has_the_settings_of_the_battle(off):
    model = model_of(NETWORKS["sets-shared"], overlap=True)
    model.policy._blocks_off = off
    model.policy.action_limits.fill_(0.5)
    model.learn(model.n_steps * model.n_envs)
    assert model.collector.policy is not model.policy
    assert model.collector.policy._blocks_off == off
    assert torch.equal(model.collector.policy.action_limits, model.policy.action_limits)
