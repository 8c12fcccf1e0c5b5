import math

import pytest
import safetensors.torch
import torch
from gymnasium import spaces

from echelon_train.config.schedules import Schedule
from echelon_train.errors import NonFiniteError
from echelon_train.policy.sequences import MlpLstmPolicy
from echelon_train.ppo.algorithm import MAX_SKIPPED
from echelon_train.ppo.normalize import ReturnNormalizer, normalize_advantages
from echelon_train.tensor_files import weights_of as named_weights
from train.ppo.random_env import RandomVecEnv, collect, make_model, model_with_rollout


def train(model):
    """Update with the same order of minibatches for every model."""
    torch.manual_seed(17)
    model.train()


def weights_of(model):
    return torch.cat([parameter.detach().flatten().clone() for parameter in model.policy.parameters()])


class SometimesActive(MlpLstmPolicy):
    """A row's observation determines whether it is active."""

    def actor_mask(self, observations):
        return observations[:, 1] > -0.5


# Advantages


def test_inactive_rows_are_not_counted():
    model = make_model(RandomVecEnv(), policy=SometimesActive, policy_kwargs={"lstm_hidden_size": 8})
    collect(model)
    buffer = model.rollout_buffer
    inactive = buffer.observations[..., 1] <= -0.5
    assert torch.equal(buffer.actor_mask, ~inactive)
    assert model.num_timesteps == int(buffer.actor_mask.sum()) < buffer.actor_mask.numel()
    before = normalize_advantages(buffer.advantages, buffer.actor_mask)
    buffer.advantages[inactive] += 1000.0
    after = normalize_advantages(buffer.advantages, buffer.actor_mask)
    assert torch.equal(before[buffer.actor_mask], after[buffer.actor_mask])
    assert float(before[buffer.actor_mask].mean()) == pytest.approx(0.0, abs=1e-6)
    assert float(before[buffer.actor_mask].std()) == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("wanted", [True, False])
def test_normalizing_advantages_can_be_turned_off(wanted, monkeypatch):
    model = model_with_rollout(normalize_advantage=wanted)
    given, batch = [], model.rollout_buffer.batch

    def watched(chunks, advantages):
        given.append(advantages.clone())
        return batch(chunks, advantages)

    monkeypatch.setattr(model.rollout_buffer, "batch", watched)
    model.train()
    raw = model.rollout_buffer.advantages
    expected = normalize_advantages(raw, model.rollout_buffer.actor_mask) if wanted else raw
    assert given and all(torch.equal(each, expected) for each in given)


# Schedules, learning rates and gradients


def test_schedules_are_evaluated_in_each_update():
    seen, discounts = [], []
    model = make_model(
        RandomVecEnv(4),
        batch_size=64,
        n_epochs=1,
        learning_rate=Schedule.parse("linear:1e-3:1e-4", ""),
        ent_coef=Schedule.parse("cosine:0.05:0.01", ""),
        clip_range=lambda left: 0.1 + 0.2 * left,
        gamma=Schedule.parse("linear:0.9:0.5", ""),
    )
    original = model.train

    def train():
        discounts.append(last_discount(model.rollout_buffer))
        original()
        logged = model.logger.name_to_value
        (group,) = model.policy.optimizer.param_groups
        seen.append((group["lr"], logged["train/ent_coef"], logged["train/clip_range"]))

    model.train = train
    model.learn(4 * 64)
    for number, (rate, entropy, clip) in enumerate(seen, 1):
        done = number / 4
        assert rate == pytest.approx(1e-3 - 9e-4 * done)
        assert entropy == pytest.approx(0.03 + 0.02 * math.cos(math.pi * done))
        assert clip == pytest.approx(0.3 - 0.2 * done)
    assert len(seen) == 4
    assert discounts == pytest.approx([0.9, 0.8, 0.7, 0.6], rel=1e-3)  # of the start of each rollout


def last_discount(buffer):
    """The discount with which a rollout's last step enters the advantages of the step before."""
    advantages, values = buffer.advantages[-2:].double(), buffer.values[-2:].double()
    discounted = advantages[0] - buffer.rewards[-2] + values[0]  # gamma * (value + lambda * advantage) of the last step
    return float((discounted / (values[1] + 0.95 * advantages[1]))[~buffer.dones[-2]].median())


def test_the_minibatch_that_exceeds_target_kl_is_not_trained_on():
    model, once = (model_with_rollout(n_epochs=epochs, target_kl=1e-6, learning_rate=0.1) for epochs in (5, 1))
    before = weights_of(model)
    for each in (model, once):
        each.policy.optimizer = torch.optim.SGD(each.policy.parameters(), lr=0.1)
        train(each)
    assert model.logger.name_to_value["train/minibatches"] == 2
    assert not torch.equal(before, weights_of(model))
    assert torch.equal(weights_of(model), weights_of(once))


def test_gradients_are_clipped_to_max_grad_norm():
    unclipped, clipped = (
        model_with_rollout(n_epochs=1, learning_rate=1.0, normalize_returns=False, max_grad_norm=n) for n in (1e9, 0.01)
    )
    changes = []
    for model in (unclipped, clipped):
        model.policy.optimizer = torch.optim.SGD(model.policy.parameters(), lr=1.0)
        before = weights_of(model)
        train(model)
        changes.append(weights_of(model) - before)
    assert float(changes[0].norm()) > 0.1
    torch.testing.assert_close(changes[1], 0.01 * changes[0] / changes[0].norm(), rtol=1e-3, atol=1e-6)


def test_the_first_rollouts_train_the_critic_only():
    model = model_with_rollout(critic_warmup=2, n_epochs=3, ent_coef=0.01)
    critic = {
        name
        for name, _ in model.policy.named_parameters()
        if name.startswith(("value_net", "mlp_extractor.value_net", "lstm_critic"))
    }
    for rollout in range(3):
        before = {name: parameter.detach().clone() for name, parameter in model.policy.named_parameters()}
        model.train()
        moved = {name for name, each in model.policy.named_parameters() if not torch.equal(each, before[name])}
        assert moved >= critic
        assert moved - critic == (set() if rollout < 2 else before.keys() - critic)


# Gradients that are not finite


def model_with_nan_rewards(bad_rows, **settings):
    """A model whose rollout has NaN rewards in the last step of some rows."""
    model = model_with_rollout(rows=8, batch_size=16, steps=16, chunk=16, **{"n_epochs": 1, **settings})
    buffer = model.rollout_buffer
    buffer.dones[:-1] = False
    buffer.episode_starts[1:] = False
    buffer.rewards[-1, list(bad_rows)] = float("nan")
    model.collector.finish(model.current("gamma"), model.gae_lambda)
    return model


def test_a_nan_reward_skips_its_minibatch_only():
    model = model_with_nan_rewards([3])
    before = weights_of(model)
    model.train()
    assert model.skipped_minibatches == model.logger.name_to_value["train/skipped_minibatches"] == 1
    assert model.logger.name_to_value["train/minibatches"] == 7
    assert torch.isfinite(weights_of(model)).all()
    assert not torch.equal(before, weights_of(model))
    assert math.isfinite(model.logger.name_to_value["train/loss"])
    for state in model.policy.optimizer.state.values():
        assert all(bool(torch.isfinite(torch.as_tensor(value)).all()) for value in state.values())
    model.learn(2 * 128, reset_num_timesteps=False)
    assert model.skipped_minibatches == 1, "later rollouts are finite"


def test_successive_skipped_minibatches_stop_training_and_write_the_last_one(tmp_path):
    from stable_baselines3.common.logger import configure

    model = model_with_nan_rewards(range(8))
    model.set_logger(configure(str(tmp_path), []))
    before = weights_of(model)
    with pytest.raises(NonFiniteError, match=f"{MAX_SKIPPED} minibatches in a row") as caught:
        model.train()
    file = tmp_path / "nonfinite_minibatch.safetensors"
    assert str(file) in str(caught.value)
    tensors = safetensors.torch.load_file(file)
    assert bool(torch.isnan(tensors["advantages"]).all())
    assert bool(torch.isfinite(tensors["observations.observation"]).all())
    # the return normaliser was not updated either
    assert torch.equal(before, weights_of(model))


# Parameters


def test_a_finite_minibatch_resets_the_count_of_skipped_ones():
    model = model_with_nan_rewards(range(4), n_epochs=3)
    train(model)  # this order never has five of them in a row
    assert model.skipped_minibatches == 12


def test_a_policy_that_is_not_a_sequence_policy_is_rejected():
    from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy

    with pytest.raises(ValueError, match="expected a SequencePolicy, got RecurrentActorCriticPolicy"):
        make_model(RandomVecEnv(4), policy=RecurrentActorCriticPolicy)


def test_rejecting_an_environment_changes_nothing():
    model = make_model(RandomVecEnv(4), batch_size=32)
    env = model.env
    with pytest.raises(ValueError, match=r"batch_size: expected at most the 16 samples"):
        model.replace_env(RandomVecEnv(1))
    with pytest.raises(ValueError, match=r"[Aa]ction spaces? do not match"):
        model.replace_env(RandomVecEnv(4, actions=spaces.Discrete(2)))
    assert model.env is env
    assert model.n_envs == 4
    model.learn(64)


def test_replacing_the_environment_keeps_weights_and_counters():
    model = make_model(RandomVecEnv(4), batch_size=32)
    model.learn(64)
    weights, steps, updates = weights_of(model), model.num_timesteps, model._n_updates
    model.replace_env(RandomVecEnv(7))
    assert torch.equal(weights, weights_of(model))
    assert (model.num_timesteps, model._n_updates) == (steps, updates)
    model.learn(112, reset_num_timesteps=False)
    assert model.num_timesteps == 64 + 112
    assert model.rollout_buffer.num_rows == 7


def test_reinitialize_resets_weights_optimizer_and_states():
    model, other = model_with_rollout(batch_size=32), make_model(RandomVecEnv(4), seed=9)
    model.train()
    fresh = {name: tensor.clone() for name, tensor in named_weights(other.policy).items() if "normalizer" not in name}
    assert model.policy.optimizer.state and model.collector.states.pi[0].any()
    model.reinitialize(fresh)
    assert not model.policy.optimizer.state and model._n_updates == 0
    assert not any(state.any() for state in model.collector.state_tensors())
    assert all(named_weights(model.policy)[name].equal(tensor) for name, tensor in fresh.items())
    found, expected = (weights.state_dict() for weights in (model.policy.return_normalizer, ReturnNormalizer(1.0)))
    assert found.keys() == expected.keys() and all(found[name].equal(expected[name]) for name in expected)
    other.policy.return_normalizer.mean.fill_(3.0)
    model.reinitialize(named_weights(other.policy))
    assert model.policy.return_normalizer.mean == 3.0, "the critic's weights belong to it"
