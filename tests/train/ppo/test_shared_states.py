"""Global states that are kept and encoded once for each team: the same results as with one for each mech."""

import pytest
import torch
from stable_baselines3.common.vec_env import VecCheckNan, VecEnvWrapper

from echelon_env.networks.config import NetworkConfig
from echelon_train.policy import BattlePolicy
from echelon_train.vec_env import BattleVecEnv
from train.ppo.random_env import collect, make_model
from train.ppo.recorded_battles import SMALL, losses_of, set_heads
from train.small import small_battle

TEAM = 5


def make_env(scenario="skirmish", battles=3, **arguments):
    config = small_battle(scenario, max_steps=6, time_limit="truncate")
    return BattleVecEnv(config, battles, opponent="novice", central=True, seed=1, **arguments)


def rollout(shares, dense, self_play):
    env = make_env(self_play=self_play)
    network = NetworkConfig(critic="central", **SMALL)
    model = make_model(env, policy=BattlePolicy, policy_kwargs={"network": network}, dense=dense, ent_coef=0.01)
    if not shares:
        model.policy.shares_states = False
        model.set_env(env)
    set_heads(model)
    torch.manual_seed(0)
    collect(model)
    model.rollout_buffer.actor_mask[3:, 1::3] = False  # some mechs are dead: their samples come last
    return model


@pytest.mark.parametrize(("dense", "self_play"), [(False, 0), (True, 0), (False, 2)])
def test_rollouts_and_gradients_are_those_of_a_state_for_each_mech(dense, self_play):
    shared, single = (rollout(shares, dense, self_play) for shares in (True, False))
    buffer, plain = shared.rollout_buffer, single.rollout_buffer
    assert (buffer.state_rows, plain.state_rows) == (TEAM, 1)
    assert torch.equal(buffer.actions, plain.actions)
    assert torch.equal(buffer.observations["observation"], plain.observations["observation"])
    states = buffer.observations["state"]
    assert states.shape[1] == 3 + self_play
    assert torch.equal(states.repeat_interleave(TEAM, dim=1), plain.observations["state"])
    assert not torch.equal(states[0, 0], states[0, 1])
    assert buffer.values.std() > 0.01
    assert buffer.bootstraps.any()
    for name in ("values", "log_probs", "bootstraps", "advantages", "returns"):
        torch.testing.assert_close(getattr(buffer, name), getattr(plain, name), rtol=1e-4, atol=1e-5)
    gradients = []
    for model in (shared, single):
        model.policy.set_training_mode(True)
        chunks = torch.randperm(buffer.num_chunks, generator=torch.Generator().manual_seed(4))[:21]
        batch = model.rollout_buffer.batch(chunks, model.rollout_buffer.advantages)
        losses_of(model, batch).total.backward()
        gradients.append([each.grad for each in model.policy.parameters()])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)


def test_states_are_not_shared_where_rows_may_have_their_own():
    class Exchanged(VecEnvWrapper):
        """The rows of the environment in reverse order."""

        def reset(self):
            return {name: part[::-1].copy() for name, part in self.venv.reset().items()}

        def step_wait(self):
            observations, *rest = self.venv.step_wait()
            return {name: part[::-1].copy() for name, part in observations.items()}, *rest

    assert make_env().state_rows == TEAM
    assert BattleVecEnv(small_battle("skirmish"), 2).state_rows == 1
    stock = make_model(make_env(), policy="MultiInputLstmPolicy", steps=4)
    network = {"network": NetworkConfig(critic="central", **SMALL)}
    wrapped = [
        make_model(wrapper(make_env()), policy=BattlePolicy, policy_kwargs=network, steps=4)
        for wrapper in (Exchanged, VecCheckNan)
    ]
    for model in (stock, *wrapped):
        collect(model)
        states = model.rollout_buffer.observations["state"]
        assert states.shape[:2] == (4, 3 * TEAM)
        assert torch.equal(states[:, 0], states[:, 1])
        assert not torch.equal(states[:, 0], states[:, -1])


def test_another_environment_may_share_other_states():
    policy = {"policy": BattlePolicy, "policy_kwargs": {"network": NetworkConfig(critic="central", **SMALL)}}
    model = make_model(make_env(battles=2), steps=4, **policy)
    buffer = model.rollout_buffer
    model.set_env(make_env(battles=2))
    assert model.rollout_buffer is buffer
    duels = make_env("duel", 10, state_mechs=10)
    for change in (model.set_env, model.replace_env):
        change(duels)
        assert model.rollout_buffer.state_rows == 1
        collect(model)
        states = model.rollout_buffer.observations["state"]
        assert len(torch.unique(states[0], dim=0)) == 10
        model.replace_env(make_env(battles=2))
        assert model.rollout_buffer.state_rows == TEAM
