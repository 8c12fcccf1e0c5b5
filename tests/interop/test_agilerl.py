"""AgileRL's multi-agent training on the parallel environment, without glue if the dead stay."""

import pytest
from agilerl.algorithms import IPPO, MADDPG, MATD3
from agilerl.components.multi_agent_replay_buffer import MultiAgentReplayBuffer
from agilerl.training.train_multi_agent_off_policy import train_multi_agent_off_policy
from agilerl.training.train_multi_agent_on_policy import train_multi_agent_on_policy
from agilerl.vector.pz_async_vec_env import AsyncPettingZooVecEnv

from echelon_env import parallel_env


def make():
    return parallel_env("skirmish-open", dead_agents="persist", max_steps=20)


def algorithm_of(kind, env, **arguments):
    agents = env.possible_agents
    spaces = [[space(agent) for agent in agents] for space in (env.single_observation_space, env.single_action_space)]
    return kind(*spaces, agent_ids=agents, **arguments)


def check_training(algorithm, train):
    before = [weight.clone() for weight in algorithm.actors["blue"].parameters()]
    (trained,), _ = train(algorithm)
    assert sorted(trained.actors) == ["blue", "red"]
    after = list(trained.actors["blue"].parameters())
    assert all(weight.isfinite().all() for weight in after)
    assert any((old != new).any() for old, new in zip(before, after, strict=True))


def test_ippo_trains_a_policy_for_each_team():
    env = AsyncPettingZooVecEnv([make, make])

    def train(algorithm):
        return train_multi_agent_on_policy(
            env, "echelon", "IPPO", [algorithm], max_steps=200, evo_steps=100, eval_steps=20, verbose=False
        )

    check_training(algorithm_of(IPPO, env, learn_step=32, batch_size=64, update_epochs=1), train)
    env.close()


class LossOfEachAgent:
    """The workaround of docs/reference/libraries.md."""

    def learn(self, experiences):
        losses = super().learn(experiences)
        return {agent: losses[self.get_network_id(agent)] for agent in self.agent_ids}


def train_off_policy(algorithm, env):
    fields = ["state", "action", "reward", "next_state", "done"]
    return train_multi_agent_off_policy(
        env, "echelon", type(algorithm).__name__, [algorithm], MultiAgentReplayBuffer(200, fields, env.possible_agents),
        max_steps=40, evo_steps=40, eval_steps=5, verbose=False,
    )  # fmt: skip


@pytest.mark.parametrize("kind", [MADDPG, MATD3])
def test_off_policy_training_needs_the_losses_of_agents(kind):
    env = AsyncPettingZooVecEnv([make, make])
    arguments = {"vect_noise_dim": 2, "batch_size": 16, "learn_step": 16}
    with pytest.raises(KeyError, match="blue_0"):
        train_off_policy(algorithm_of(kind, env, **arguments), env)
    mended = type(kind.__name__, (LossOfEachAgent, kind), {})
    check_training(algorithm_of(mended, env, **arguments), lambda algorithm: train_off_policy(algorithm, env))
    env.close()
