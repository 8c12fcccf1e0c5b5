"""RLlib's ParallelPettingZooEnv with PPO (the new API stack), and with mechs that die."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import ray
from gymnasium.error import ResetNeeded
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv
from ray.tune.registry import register_env

import echelon_env
from echelon_env.layout.actions import ACTION_DIM

pytestmark = pytest.mark.filterwarnings("default")  # ray and its dependencies cause warnings

EXAMPLE = Path(__file__).parents[2] / "examples" / "rllib_ppo.py"


def play(env, seed=0):
    """Play random actions to the end; returns the last step's results and the decision of the first death."""
    rng = np.random.default_rng(seed)
    observations, _ = env.reset(seed=seed)
    agents, first_death, decision = list(observations), None, 0
    while agents:
        decision += 1
        results = env.step({agent: rng.uniform(-1, 1, ACTION_DIM).astype(np.float32) for agent in agents})
        _, _, terminateds, truncateds, _ = results
        agents = [agent for agent in agents if not (terminateds[agent] or truncateds[agent])]
        if first_death is None and any(terminateds[agent] for agent in results[0]):
            first_death = decision
    return results, first_death


@pytest.mark.parametrize("options", [{"time_limit": "terminate"}, {"dead_agents": "persist"}])
def test_episodes_end_for_all(deadly, options):
    (_, _, terminateds, truncateds, _), _ = play(ParallelPettingZooEnv(
        echelon_env.parallel_env(deadly, max_steps=80, **options)
    ))  # fmt: skip
    assert terminateds["__all__"] != truncateds["__all__"]


def test_fault_a_death_in_the_decision_of_the_truncation_leaves_the_episode_open(deadly):
    _, decision = play(ParallelPettingZooEnv(echelon_env.parallel_env(deadly, max_steps=120)))
    env = ParallelPettingZooEnv(echelon_env.parallel_env(deadly, max_cycles=decision))
    (_, _, terminateds, truncateds, _), _ = play(env)
    assert not terminateds["__all__"] and not truncateds["__all__"]
    with pytest.raises(ResetNeeded):
        env.step({})


@pytest.fixture(scope="module")
def local_ray():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def build(settings):
    register_env("battle", lambda settings: ParallelPettingZooEnv(echelon_env.parallel_env(**settings)))
    return (
        PPOConfig()
        .environment("battle", env_config=settings)
        .env_runners(num_env_runners=0)
        .multi_agent(policies={"blue", "red"}, policy_mapping_fn=lambda agent, episode, **kwargs: agent.split("_")[0])
        .training(train_batch_size_per_learner=240, minibatch_size=120, num_epochs=1)
        .debugging(seed=0)
        .build_algo()
    )


@pytest.mark.parametrize("action", ["continuous", "multi_discrete"])
def test_ppo_trains_while_mechs_die(local_ray, deadly, action):
    algorithm = build({"scenario": deadly, "time_limit": "terminate", "max_steps": 60, "maps": 5, "action": action})
    for _ in range(3):
        result = algorithm.train()
    algorithm.stop()
    episodes = result["env_runners"]
    assert episodes["num_episodes"] >= 3 and episodes["episode_len_mean"] <= 60
    assert np.isfinite([result["learners"][team]["total_loss"] for team in ("blue", "red")]).all()
    steps = episodes["num_agent_steps_sampled"]
    assert set(steps) == set(echelon_env.parallel_env(deadly).possible_agents)
    assert min(steps.values()) < max(steps.values())  # the dead take no further part


def test_rllib_reports_what_it_does_not_support(local_ray):
    with pytest.raises(ValueError, match="No default encoder config"):
        build({"scenario": "duel-open", "observation": "dict"})
    with pytest.raises(NotImplementedError, match="Unsupported action space"):
        build({"scenario": "duel-open", "action": "dict"})


@pytest.mark.parametrize("opponent", [[], ["--opponent=trivial"]])
def test_the_example_runs(opponent):
    short = ["--scenario=duel-open", "--decisions=20", "--iterations=1", "--batch=80"]
    command = [sys.executable, EXAMPLE, *short, *opponent]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "blue won" in result.stdout
    assert ("red_0" in result.stdout) == (not opponent)
