"""SuperSuit and Stable-Baselines3: every mech of every battle is a row, and stock PPO controls all of them."""

import argparse
import warnings

import supersuit
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecMonitor

import echelon_env

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--battles", type=int, default=4, help="parallel battles")
parser.add_argument("--steps", type=int, default=20_000, help="decisions of all mechs together")
arguments = parser.parse_args()

# The conversion needs the same agents in all steps, so dead mechs persist. The time limit is part of the task, because
# the conversion passes truncations to PPO as terminations.
env = echelon_env.parallel_env("skirmish", dead_agents="persist", time_limit="terminate", max_steps=120, maps=50)
env = supersuit.frame_stack_v2(env, 2)
rows = supersuit.pettingzoo_env_to_vec_env_v1(env)
rows = supersuit.concat_vec_envs_v1(rows, arguments.battles, num_cpus=0, base_class="stable_baselines3")
# PPO's parameter seed does not work with the conversion; this gives each battle a different seed.
rows.venv.reset(seed=1)
with warnings.catch_warnings():
    # SuperSuit's vector environment has no render mode for VecMonitor.
    warnings.filterwarnings("ignore", "The `render_mode` attribute is not defined")
    rows = VecMonitor(rows)

model = PPO("MlpPolicy", rows, n_steps=128, batch_size=256, device="cpu")
model.learn(arguments.steps)
episodes = list(model.ep_info_buffer)
print(f"{rows.num_envs} rows, observations {rows.observation_space.shape}, {len(episodes)} episodes ended")
if episodes:
    print(f"mean return {sum(episode['r'] for episode in episodes) / len(episodes):.2f}")
rows.close()
