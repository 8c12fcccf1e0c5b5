"""Global states that are kept and encoded once for each team: the same results as with one for each mech."""

import numpy as np
import pytest
import torch

from echelon_env.networks.config import NetworkConfig
from echelon_train.policy import BattlePolicy
from echelon_train.vec_env import BattleVecEnv
from train.ppo.random_env import collect, make_model
from train.ppo.recorded_battles import SMALL, losses_of, set_heads, whole_batch
from train.small import small_battle

TEAM = 5


def rollout(shares, dense, self_play, network):
    env = BattleVecEnv(
        small_battle("skirmish", max_steps=6), 3, opponent="novice", self_play=self_play, central=True, seed=1
    )
    model = make_model(env, policy=BattlePolicy, policy_kwargs={"network": network}, dense=dense, ent_coef=0.01)
    if not shares:
        model.policy.shares_states = False
        model._allocate()
    set_heads(model)
    torch.manual_seed(0)
    collect(model)
    return model


@pytest.mark.parametrize(("dense", "self_play"), [(False, 0), (True, 0), (False, 2)])
def test_rollouts_and_gradients_are_those_of_a_state_for_each_mech(dense, self_play):
    network = NetworkConfig(critic="central", **SMALL)
    shared, single = (rollout(shares, dense, self_play, network) for shares in (True, False))
    buffer, plain = shared.rollout_buffer, single.rollout_buffer
    assert (buffer.team_size, plain.team_size) == (TEAM, 1)
    assert torch.equal(buffer.actions, plain.actions)
    assert torch.equal(buffer.observations["observation"], plain.observations["observation"])
    states = buffer.observations["state"]
    assert torch.equal(states.repeat_interleave(TEAM, dim=1), plain.observations["state"])
    assert states.shape[1] == 3 + self_play
    assert buffer.dones.any()
    assert not torch.equal(states[0, 0], states[0, 1])
    assert buffer.values.std() > 0.01
    for name in ("values", "log_probs", "advantages", "returns"):
        torch.testing.assert_close(getattr(buffer, name), getattr(plain, name), rtol=1e-4, atol=1e-5)
    gradients = []
    for model in (shared, single):
        model.policy.set_training_mode(True)
        losses_of(model, whole_batch(model)).total.backward()
        gradients.append([each.grad for each in model.policy.parameters()])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)
    with torch.no_grad():
        for parameter in (*shared.policy.battle_encoder.parameters(), *single.policy.battle_encoder.parameters()):
            parameter.mul_(1.5)
    before = buffer.values.clone()
    for model in (shared, single):
        model._recompute()
    torch.testing.assert_close(buffer.values, plain.values, rtol=1e-4, atol=1e-5)
    assert (buffer.values - before).abs().max() > 0.01


@pytest.mark.parametrize("dense", [False, True])
def test_a_minibatch_has_each_state_once(dense):
    model = rollout(True, dense, 1, NetworkConfig(critic="central", **SMALL))
    buffer = model.rollout_buffer
    chunks = torch.tensor([0, 3, 7, 21, 22])  # rows 0 and 3 are of one team, 7 of another; 21 and 22 are a later chunk
    batch = buffer.batch(chunks, buffer.advantages, buffer.loss_mask())
    states, samples = batch.observations["state"], len(batch.actions)
    if dense:  # shapes must not depend on the data
        assert len(states) == samples
        assert "team" not in batch.observations
        return
    assert len(states) < samples == len(chunks) * buffer.chunk
    assert len(torch.unique(states, dim=0)) == len(states)
    flat = buffer.observations["observation"].flatten(0, 1)
    repeated = buffer.observations["state"].repeat_interleave(TEAM, dim=1).flatten(0, 1)
    for sample in range(samples):
        place = (flat == batch.observations["observation"][sample]).all(1).nonzero().flatten()
        found = states[batch.observations["team"][sample]]
        assert any(torch.equal(repeated[each], found) for each in place)


def test_policies_that_do_not_share_states_get_one_for_each_row():
    env = BattleVecEnv(small_battle("skirmish", max_steps=6), 2, opponent="novice", central=True, seed=1)
    assert env.state_rows == TEAM
    assert BattleVecEnv(small_battle("skirmish"), 2).state_rows == 1
    model = make_model(env, policy="MultiInputLstmPolicy", steps=4)
    collect(model)
    assert model.rollout_buffer.observations["state"].shape[:2] == (4, 2 * TEAM)
    assert np.isfinite(model.rollout_buffer.values.numpy()).all()
