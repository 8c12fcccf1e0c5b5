"""A PettingZoo battle with random actions: the loop that every multi-agent user knows."""

import echelon_env

env = echelon_env.parallel_env("skirmish", max_steps=120)
observations, infos = env.reset(seed=1)
totals = dict.fromkeys(env.agents, 0.0)
while env.agents:
    actions = {agent: env.action_space(agent).sample() for agent in env.agents}
    observations, rewards, terminations, truncations, infos = env.step(actions)
    for agent, reward in rewards.items():
        totals[agent] += reward
for agent, total in totals.items():
    print(f"{agent}: {total:6.2f}")
print("outcome for blue:", infos["blue_0"]["outcome"], infos["blue_0"]["reason"])
