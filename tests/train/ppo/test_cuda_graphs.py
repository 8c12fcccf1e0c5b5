"""Recorded functions give the results of the functions themselves. What is recorded on a GPU is in test_cuda.py."""

import copy
import dataclasses
import gc
import pickle
import weakref

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from echelon_train.config.schedules import Schedule
from echelon_train.config.train import battle_config
from echelon_train.policy import BattlePolicy
from echelon_train.policy.raw_actions import RAW_DIM
from echelon_train.ppo.cuda_graphs import KEPT, Graphed, _mapped
from echelon_train.ppo.losses import Coefficients, add_gradients
from echelon_train.ppo.update import compiled
from train.ppo.random_env import collect, make_model
from train.ppo.recorded_battles import RecordedBattles, whole_batch
from train.ppo.test_dense import NETWORKS, model_of

WEIGHTS = Coefficients(0.2, 0.01, 0.5)


class OnDevice(TorchDispatchMode):
    """Fails for an operation that reads a tensor of another device: a GPU would wait for the copy."""

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        for each in tree_leaves((arguments, keywords)):
            if isinstance(each, torch.Tensor):
                assert each.device.type == "meta" or each.ndim == 0, f"{function} reads {each.shape} on {each.device}"
        return function(*arguments, **(keywords or {}))


def decision_of(model):
    """The arguments of a decision: those of the last step of a rollout."""
    observations = model.collector._on_device(model._last_obs)
    noise = torch.randn(model.n_envs, RAW_DIM, generator=torch.Generator().manual_seed(0))
    return observations, model.collector.states, torch.zeros(model.n_envs), noise


def gradients_of(model):
    return [None if each.grad is None else each.grad.clone() for each in model.policy.parameters()]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("name", ["sets-central", "flat-separate-forgetful"])
def test_recorded_training_is_the_same(name, device):
    """Over updates in which schedules change, the critic warms up, and the last minibatch is smaller."""
    settings = {
        "batch_size": 128,
        "n_epochs": 2,
        "critic_warmup": 1,
        "ent_coef": Schedule(0.01, 0.001, "linear"),
        "clip_range": Schedule(0.3, 0.1, "linear"),
    }
    weights = []
    for mode in ("off", "graphs"):
        model = model_of(NETWORKS[name], dense=True, compile_mode=mode, device=device, **settings)
        torch.manual_seed(1)
        np.random.seed(1)  # noqa: NPY002
        model.learn(4 * model.n_steps * model.n_envs)
        weights.append(torch.cat([parameter.detach().flatten() for parameter in model.policy.parameters()]))
    assert len(model.policy.decide._recordings) == 1
    assert len(model.update.add_gradients._recordings) == KEPT
    close = 1e-6 if device == "cpu" else 1e-4
    torch.testing.assert_close(*weights, rtol=close, atol=close)


def test_no_garbage_is_collected_while_a_function_is_recorded():
    """CUDA refuses to free the graph of a model that has become garbage while it records another."""
    seen = []

    class Garbage:
        def __init__(self):
            self.itself = self

    def function(tensor):
        seen.append((gc.isenabled(), old()))
        return 2 * tensor

    graphed = Graphed(function, model_of(NETWORKS["sets-shared"], dense=True).policy)
    gc.disable()
    old = weakref.ref(Garbage())
    gc.enable()
    with torch.no_grad():
        graphed(torch.ones(2))
    assert seen[0] == (False, None)
    assert gc.isenabled()


@pytest.mark.cuda
def test_a_model_that_has_become_garbage_does_not_break_a_recording():
    def collect_garbage(*_):
        gc.collect()

    for _ in range(2):
        model = model_of(NETWORKS["sets-shared"], dense=True, compile_mode="graphs", device="cuda")
        model.policy.features_extractor.register_forward_pre_hook(collect_garbage)
        model.itself = model
        model.learn(model.n_steps * model.n_envs)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda policy: pickle.loads(pickle.dumps(policy))])
def test_copies_of_a_policy_record_for_themselves(copied):
    model = model_of(NETWORKS["sets-shared"], dense=True, compile_mode="graphs")
    collect(model)
    policy, arguments = copied(model.policy), decision_of(model)
    with torch.no_grad():
        policy.action_net.bias += 0.5
        assert not policy.decide._recordings
        found, before = policy.decide(*arguments), model.policy.decide(*arguments)
        expected = type(policy).decide(policy, *arguments)
    assert all(torch.equal(*pair) for pair in zip(tree_leaves(found), tree_leaves(expected), strict=True))
    assert not torch.equal(found[0], before[0])


def test_policies_that_do_not_say_so_are_not_recorded():
    class Others(BattlePolicy):
        can_be_recorded = False

    model = make_model(RecordedBattles(), policy=Others, policy_kwargs={"network": NETWORKS["sets-shared"]}, dense=True)
    assert compiled(model.policy, "auto") is add_gradients
    with pytest.raises(ValueError, match="the kernels of Others cannot be recorded"):
        compiled(model.policy, "graphs")


def test_results_are_kept_when_the_next_call_writes_over_them():
    model = model_of(NETWORKS["sets-shared"], dense=True)
    collect(model)
    batch, totals = whole_batch(model), (torch.tensor(192.0), torch.tensor(192.0))
    graphed = Graphed(add_gradients, model.policy, gradients=True)
    found = []
    for scale in (1.0, 2.0):
        numbers = graphed(model.policy, batch._replace(returns=scale * batch.returns), None, WEIGHTS, *totals)
        found.append((numbers, gradients_of(model)))
    for (numbers, gradients), scale in zip(found, (1.0, 2.0), strict=True):
        model.policy.zero_grad()
        expected = add_gradients(model.policy, batch._replace(returns=scale * batch.returns), None, WEIGHTS, *totals)
        assert torch.equal(numbers, expected)
        for one, other in zip(gradients, gradients_of(model), strict=True):
            assert (one is other is None) or torch.equal(one, other)
    assert len(graphed._recordings) == 1
    graphed(model.policy, batch, None, WEIGHTS._replace(policy_coef=0.0), *totals)
    assert len(graphed._recordings) == 2


def test_it_is_recorded_again_when_the_policy_has_changed():
    model = model_of(NETWORKS["sets-shared"], dense=True)
    collect(model)
    policy, decide = model.policy, model.policy.decide
    graphed, arguments = Graphed(decide, policy), decision_of(model)

    def check():
        for one, other in zip(tree_leaves(graphed(*arguments)), tree_leaves(decide(*arguments)), strict=True):
            assert torch.equal(one, other)
        return next(iter(graphed._recordings.values()))

    with torch.no_grad():
        first = check()
        policy.action_net.bias += 0.5
        assert check() is first
        config = battle_config("skirmish")
        policy.set_battle(dataclasses.replace(config, abilities=dataclasses.replace(config.abilities, messages=False)))
        second = check()
        assert second is not first
        policy.action_net.bias.data = policy.action_net.bias.data.clone()
        assert check() is not second


@pytest.mark.parametrize("name", ["sets-separate", "sets-central-forgetful", "flat-shared"])
def test_nothing_that_is_recorded_waits_or_reads_other_memory(name):
    model = model_of(NETWORKS[name], dense=True)
    collect(model)
    arguments, batch = decision_of(model), whole_batch(model)
    totals = torch.tensor(192.0), torch.tensor(192.0)
    changing = WEIGHTS._replace(
        clip_range=torch.tensor(0.2), ent_coef=torch.tensor(0.01), motion_ent_scale=torch.tensor(0.5)
    )
    model.policy.to("meta")
    model.policy.return_normalizer.to("meta")
    arguments, batch, totals, changing = _mapped(lambda each: each.to("meta"), (arguments, batch, totals, changing))
    model.policy.encoding_dtype = None
    with torch.no_grad():
        model.policy.decide(*arguments)  # makes the tables
    add_gradients(model.policy, batch, model.policy.return_normalizer, changing, *totals)
    with OnDevice():
        with torch.no_grad():
            model.policy.decide(*arguments)
        add_gradients(model.policy, batch, model.policy.return_normalizer, changing, *totals)
