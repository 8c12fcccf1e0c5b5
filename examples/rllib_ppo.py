"""RLlib: PPO plays both teams of a battle, each team with its own policy, or blue against an opponent.

A mech that dies is terminated and leaves the episode, which RLlib supports. With ``time_limit="terminate"`` the clock
terminates all agents, as a victory does. RLlib's wrapper ends an episode only if all agents of the last step were
terminated, or all were truncated, so a death in the same decision in which the clock truncates the others would leave
the episode without an end. Against an opponent dead mechs stay until the end of the battle.
"""

import argparse
import os

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv
from ray.tune.registry import register_env

import echelon_env
from echelon_env.wrappers import TeamVersusPolicy


class WinRate(RLlibCallback):
    """Logs the share of the last battles that blue has won."""

    def on_episode_end(self, *, episode, metrics_logger, **kwargs) -> None:
        """Called by RLlib."""
        agent, info = next(iter(episode.get_infos(-1).items()))  # of an agent that was there at the end
        won = info["outcome"] == (1 if agent.startswith("blue") else -1)
        metrics_logger.log_value("won", float(won), window=100)


def main() -> None:
    """Train for some iterations and print the win rate and RLlib's episode statistics."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenario", default="skirmish-open")
    parser.add_argument("--opponent", help="of blue, such as novice; without it both teams learn")
    parser.add_argument("--decisions", type=int, default=240, help="the battle's time limit")
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--batch", type=int, default=2000, help="decisions of the battle in an iteration")
    arguments = parser.parse_args()

    def make(options: dict) -> ParallelPettingZooEnv:
        env = echelon_env.parallel_env(**options)
        return ParallelPettingZooEnv(TeamVersusPolicy(env, arguments.opponent) if arguments.opponent else env)

    register_env("echelon", make)
    teams = {"blue"} if arguments.opponent else {"blue", "red"}
    options = {
        "scenario": arguments.scenario, "max_steps": arguments.decisions, "time_limit": "terminate", "maps": 50,
        "dead_agents": "persist" if arguments.opponent else "terminate",
    }  # fmt: skip
    torch.set_num_threads(1)  # networks of this size get slower with more threads
    ray.init(num_cpus=2, include_dashboard=False)
    config = (
        PPOConfig()
        .environment("echelon", env_config=options)
        .env_runners(num_env_runners=0)
        .callbacks(WinRate)
        .multi_agent(policies=teams, policy_mapping_fn=lambda agent, episode, **kwargs: agent.split("_")[0])
        .training(
            gamma=0.995,
            train_batch_size_per_learner=arguments.batch,
            minibatch_size=min(256, arguments.batch),
            num_epochs=4,
        )
    )
    algorithm = config.build_algo()
    for iteration in range(arguments.iterations):
        episodes = algorithm.train()["env_runners"]
        returns = {agent: round(float(mean), 2) for agent, mean in episodes["agent_episode_returns_mean"].items()}
        won = f"blue won {episodes['won']:.0%} of the last 100, " if "won" in episodes else ""
        print(f"iteration {iteration}: {episodes['num_episodes']} episodes ended, {won}mean returns {returns}")
    algorithm.stop()
    ray.shutdown()


if __name__ == "__main__":
    main()
