"""AgileRL's multi-agent training on the parallel environment, without glue if the dead stay."""

from agilerl.algorithms import IPPO
from agilerl.training.train_multi_agent_on_policy import train_multi_agent_on_policy
from agilerl.vector.pz_async_vec_env import AsyncPettingZooVecEnv

from echelon_env import parallel_env


def make():
    return parallel_env("skirmish-open", dead_agents="persist", max_steps=20)


def test_ippo_trains_a_policy_for_each_team():
    env = AsyncPettingZooVecEnv([make, make])
    agents = env.possible_agents
    spaces = [[space(agent) for agent in agents] for space in (env.single_observation_space, env.single_action_space)]
    algorithm = IPPO(*spaces, agent_ids=agents, learn_step=32, batch_size=64, update_epochs=1)
    before = [weight.clone() for weight in algorithm.actors["blue"].parameters()]
    (trained,), _ = train_multi_agent_on_policy(
        env, "echelon", "IPPO", [algorithm], max_steps=200, evo_steps=100, eval_steps=20, verbose=False
    )
    env.close()
    assert sorted(trained.actors) == ["blue", "red"]
    after = list(trained.actors["blue"].parameters())
    assert all(weight.isfinite().all() for weight in after)
    assert any((old != new).any() for old, new in zip(before, after, strict=True))
