"""Recomputing advantages before every epoch except the first."""

import pytest
import torch

from echelon_train.policy import BattlePolicy, action_space, observation_space
from train.ppo.random_env import RandomVecEnv, collect, make_model, model_with_rollout


def weights_after_training(model):
    torch.manual_seed(17)
    model.train()
    return torch.cat([parameter.detach().flatten() for parameter in model.policy.parameters()])


def test_recomputing_with_equal_weights_changes_nothing():
    model = model_with_rollout(rows=8, steps=16, chunk=4)
    buffer = model.rollout_buffer
    before = {name: getattr(buffer, name).clone() for name in ("values", "advantages", "returns", "actions")}
    states = [state.clone() for state in buffer.states]
    assert int(buffer.episode_starts[1:].sum()) > 2
    torch.manual_seed(99)
    model._recompute()
    for name, tensor in before.items():
        torch.testing.assert_close(getattr(buffer, name), tensor, rtol=1e-5, atol=1e-6)
    for kept, state in zip(buffer.states, states, strict=True):
        torch.testing.assert_close(kept, state, rtol=1e-5, atol=1e-6)


def test_recomputing_equals_a_loop_over_the_rollout():
    model = model_with_rollout(rows=3, steps=16, chunk=4, normalize_returns=False)
    with torch.no_grad():
        for parameter in model.policy.parameters():
            parameter.add_(0.1)
    buffer, lstm = model.rollout_buffer, model.policy.lstm_critic
    bootstraps = buffer.bootstraps.clone()
    assert bool(bootstraps.any())
    model._recompute()
    assert torch.equal(buffer.bootstraps, bootstraps), "final observations are not stored"
    hidden, cell = (torch.zeros(1, 3, lstm.hidden_size) for _ in range(2))
    expected = torch.zeros(17, 3)
    observations = [*buffer.observations, torch.as_tensor(model._last_obs)]
    starts = [*buffer.episode_starts, torch.as_tensor(model._last_episode_starts)]
    with torch.no_grad():
        for step in range(17):
            keep = 1.0 - starts[step].float().view(1, 3, 1)
            output, (hidden, cell) = lstm(observations[step][None], (hidden * keep, cell * keep))
            expected[step] = model.policy.value_net(model.policy.mlp_extractor.forward_critic(output[0])).flatten()
            if step in (3, 7, 11):
                torch.testing.assert_close(buffer.states[2][(step + 1) // 4], hidden)
    torch.testing.assert_close(buffer.values, expected[:-1], rtol=1e-5, atol=1e-5)
    after = torch.where(buffer.dones, buffer.bootstraps, expected[1:])
    errors = buffer.rewards + model._current("gamma") * after - buffer.values
    last_gae, advantages = torch.zeros(3), []
    for step in reversed(range(16)):
        last_gae = errors[step] + model._current("gamma") * model.gae_lambda * ~buffer.dones[step] * last_gae
        advantages.append(last_gae)
    torch.testing.assert_close(buffer.advantages, torch.stack(advantages[::-1]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("policy", ["MlpLstmPolicy", BattlePolicy])
def test_recomputing_draws_no_random_numbers(policy):
    env = RandomVecEnv(4) if policy == "MlpLstmPolicy" else RandomVecEnv(4, 0, observation_space(), action_space())
    model = make_model(env, policy=policy)
    collect(model)
    before = torch.get_rng_state()
    model._recompute()
    assert torch.equal(torch.get_rng_state(), before)


def test_recomputing_has_an_effect_from_the_second_epoch_on():
    one = [model_with_rollout(recompute_advantages=flag, n_epochs=1) for flag in (False, True)]
    two = [model_with_rollout(recompute_advantages=flag, n_epochs=2) for flag in (False, True)]
    for models, same in ((one, True), (two, False)):
        without, recomputed = map(weights_after_training, models)
        assert torch.equal(without, recomputed) is same
