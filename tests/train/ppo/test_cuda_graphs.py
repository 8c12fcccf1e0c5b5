"""Recorded functions give the results of the functions themselves. What is recorded on a GPU is in test_cuda.py."""

import dataclasses
import gc
import weakref

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from echelon_env.layout.parts import NUM_PARTS
from echelon_train.config.schedules import Schedule
from echelon_train.config.train import battle_config
from echelon_train.policy import BattlePolicy
from echelon_train.ppo.collector import Collector
from echelon_train.ppo.cuda_graphs import KEPT, Graphed, _mapped, is_recorded
from echelon_train.ppo.losses import Coefficients, add_gradients
from echelon_train.ppo.update import Update, UpdateSettings
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
    observations = model.collector._on_device(model.collector._tensors(model._last_obs))
    noise = torch.rand(model.n_envs, NUM_PARTS, generator=torch.Generator().manual_seed(0))
    return observations, model.collector.states, torch.zeros(model.n_envs), noise


def gradients_of(model):
    return [None if each.grad is None else each.grad.clone() for each in model.policy.parameters()]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("name", ["sets-central", "sets-mappo", "flat-ippo-forgetful"])
def test_recorded_training_is_the_same(name, device):
    """Over updates in which schedules change, the critic warms up, gradients are not finite, and the last minibatch is
    smaller."""
    settings = {
        "batch_size": 128,
        "n_epochs": 2,
        "critic_warmup": 1,
        "learning_rate": Schedule(0.01, 0.001, "linear"),
        "ent_coef": Schedule(0.01, 0.001, "linear"),
        "clip_range": Schedule(0.3, 0.1, "linear"),
    }
    weights, optimizers, logged = [], [], []
    for mode in ("off", "graphs"):
        model = model_of(NETWORKS[name], dense=True, compile_mode=mode, device=device, **settings)
        finish, rollouts = model.collector.finish, []

        def finish_with_nan(*arguments, model=model, finish=finish, rollouts=rollouts):
            finish(*arguments)
            rollouts.append(None)
            if len(rollouts) == 3:
                model.rollout_buffer.returns[-1, 0] = torch.nan

        model.collector.finish = finish_with_nan
        torch.manual_seed(1)
        np.random.seed(1)  # noqa: NPY002
        model.learn(4 * model.n_steps * model.n_envs)
        assert model.skipped_minibatches == 2
        weights.append(torch.cat([parameter.detach().flatten() for parameter in model.policy.parameters()]))
        states = model.policy.optimizer.state.values()
        optimizers.append([torch.as_tensor(state[key]) for state in states for key in ("step", "exp_avg")])
        logged.append({key: each for key, each in model.logger.name_to_value.items() if key.startswith("train/")})
    assert [len(each._recordings) for each in model.collector._graphs] == [1, 1]
    assert len(model.update._gradients._recordings) == KEPT
    assert len(model.update._steps._recordings) == KEPT, "with and without the actor"
    close = 1e-5 if device == "cpu" else 1e-4
    torch.testing.assert_close(*weights, rtol=close, atol=close)
    torch.testing.assert_close(*optimizers, rtol=close, atol=close)
    assert logged[0] == pytest.approx(logged[1], rel=10 * close, abs=10 * close)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_a_step_is_recorded_again_for_another_state_of_the_optimizer(device):
    """A CUDA graph would write into the memory of the old one."""
    weights = []
    for mode in ("off", "graphs"):
        model = model_of(NETWORKS["sets-shared"], dense=True, compile_mode=mode, device=device)
        start = {name: tensor.clone() for name, tensor in model.policy.state_dict().items()}
        collect(model)
        recordings = []
        for again in (False, False, True):
            if again:
                model.reinitialize(start)
            torch.manual_seed(1)
            model.train()
            recordings.append(model.update._steps)
        weights.append(torch.cat([parameter.detach().flatten() for parameter in model.policy.parameters()]))
    assert recordings[0] is recordings[1] is not recordings[2]
    steps = {int(state["step"]) for state in model.policy.optimizer.state.values()}
    assert steps == {model.n_epochs * 192 // model.batch_size}
    torch.testing.assert_close(*weights, rtol=1e-4, atol=1e-4)


class Reads(TorchDispatchMode):
    """Counts the numbers that are read: a GPU would be waited for."""

    count = 0

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        self.count += function is torch.ops.aten._local_scalar_dense.default
        return function(*arguments, **(keywords or {}))


def test_a_recorded_update_reads_nothing_for_a_minibatch():
    counts = []
    for batch_size in (96, 24):
        model = model_of(NETWORKS["sets-central"], dense=True, compile_mode="graphs", batch_size=batch_size)
        collect(model)
        model.train()
        with Reads() as reads:
            model.train()
        counts.append(reads.count)
    assert counts[0] == counts[1]


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


def test_policies_that_do_not_say_so_are_not_recorded():
    class Others(BattlePolicy):
        can_be_recorded = False

    model = make_model(RecordedBattles(), policy=Others, policy_kwargs={"network": NETWORKS["sets-shared"]}, dense=True)
    assert not is_recorded(model.policy, "auto")
    with pytest.raises(ValueError, match="the kernels of Others cannot be recorded"):
        is_recorded(model.policy, "graphs")


def test_the_next_call_writes_over_results():
    model = model_of(NETWORKS["sets-shared"], dense=True)
    collect(model)
    batch, totals = whole_batch(model), (torch.tensor(192.0), torch.tensor(192.0))
    graphed = Graphed(add_gradients, model.policy, gradients=True)
    kept = []
    for scale in (1.0, 2.0):
        arguments = batch._replace(returns=scale * batch.returns), None, WEIGHTS, *totals
        numbers = graphed(model.policy, *arguments)
        found, gradients = numbers.clone(), gradients_of(model)
        model.policy.zero_grad()
        assert torch.equal(found, add_gradients(model.policy, *arguments))
        for one, other in zip(gradients, gradients_of(model), strict=True):
            assert (one is other is None) or torch.equal(one, other)
        kept.append(numbers)
    assert kept[0] is kept[1]
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


@pytest.mark.parametrize("name", ["sets-ippo", "sets-central-forgetful", "flat-shared"])
def test_nothing_that_is_recorded_waits_or_reads_other_memory(name):
    model = model_of(NETWORKS[name], dense=True, compile_mode="graphs")
    collect(model)
    observations, states, _, noise = decision_of(model)
    sizes = model.n_envs, model.collector.buffer.state_rows, model.n_steps, model.chunk
    model.policy.to("meta")
    model.policy.optimizer._need_device_dtype_check_for_fused = False
    collector, update = Collector(model.policy, *sizes, recorded=True), Update(model.policy, recorded=True, parts=1)
    flags = {"starts": torch.zeros(model.n_envs), "active": torch.ones(model.n_envs, dtype=torch.bool)}
    decision, chunks, totals = _mapped(
        lambda each: each.to("meta"),
        ((observations, flags, states, noise, torch.tensor(3)), torch.arange(4), torch.tensor([192.0, 192.0])),
    )

    def everything():
        with torch.no_grad():
            collector._decided(*decision)
        update.begin(
            collector.buffer,
            WEIGHTS,
            UpdateSettings(epochs=1, chunks=4, max_grad_norm=0.5, kl_limit=0.1),
        )
        update._rollout.sample_counts(chunks)
        numbers = update._add_gradient(chunks, totals, update._coefficients, False)
        gradients = tuple(each.grad for each in model.policy.parameters())
        with torch.no_grad():
            update._step_recorded(numbers, gradients, tuple(update._rates), update._settings)

    everything()  # makes the tables
    with OnDevice():
        everything()
