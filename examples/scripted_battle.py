"""A battle between two scripted teams, written as an animated GIF."""

import argparse

import numpy as np

import echelon_env
from echelon_env import opponents
from echelon_env.render import save_gif

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--scenario", default="skirmish")
parser.add_argument("--decisions", type=int, default=480, help="decisions after which the battle is truncated")
parser.add_argument("--out", default="battle.gif")
arguments = parser.parse_args()

# With dead_agents="persist" a team has the same rows from the first decision to the last, as the policies expect.
env = echelon_env.parallel_env(
    arguments.scenario, dead_agents="persist", max_cycles=arguments.decisions, render_mode="rgb_array"
)
teams = {name: [agent for agent in env.possible_agents if agent.startswith(name)] for name in ("blue", "red")}
players = {"blue": opponents.make("novice", 0, env.config), "red": opponents.make("trivial", 1, env.config)}

observations, infos = env.reset(seed=7)
for name, player in players.items():
    player.reset(np.ones(len(teams[name]), dtype=bool))  # a battle starts for all of its mechs
frames = [env.render()]
while env.agents:
    actions = {}
    for name, agents in teams.items():
        rows = players[name].act(np.stack([observations[agent] for agent in agents]))
        actions |= dict(zip(agents, rows, strict=True))
    observations, rewards, terminations, truncations, infos = env.step(actions)
    frames.append(env.render())
env.close()
save_gif(frames, arguments.out)

info = infos["blue_0"]
won = {1: "blue has won", 0: "a draw", -1: "red has won"}
print(
    f"{won[info['outcome']]} by {info['reason']}" if info["reason"] else "truncated",
    f"({len(frames) - 1} decisions)",
)
print(f"GIF: {arguments.out}")
