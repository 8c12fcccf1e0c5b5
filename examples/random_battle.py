"""A PettingZoo battle with random actions: the standard multi-agent loop."""

import argparse

import echelon_env

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--scenario", default="skirmish")
parser.add_argument("--decisions", type=int, default=120, help="decisions after which the battle is truncated")
arguments = parser.parse_args()

# Discrete actions have masks of possible choices, so that agents fire only weapons that can fire.
env = echelon_env.parallel_env(arguments.scenario, action="multi_discrete", max_cycles=arguments.decisions)
observations, infos = env.reset(seed=1)
for agent in env.agents:
    env.action_space(agent).seed(env.possible_agents.index(agent))
statistics = {}
while env.agents:
    actions = {agent: env.action_space(agent).sample(infos[agent]["action_mask"]) for agent in env.agents}
    observations, rewards, terminations, truncations, infos = env.step(actions)
    # An agent that dies is terminated and leaves env.agents; its last info has the statistics of its episode.
    statistics |= {agent: info["episode_statistics"] for agent, info in infos.items()}
for agent in env.possible_agents:
    record = dict(zip(env.metadata["episode_statistics"], statistics[agent], strict=True))
    print(f"{agent}: return {record['r']:6.2f} in {record['l']:.0f} decisions, {record['damage_dealt']:.0f} damage")
env.close()
