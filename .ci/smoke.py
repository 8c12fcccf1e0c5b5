"""What an installation without extras must be able to do; run with the installed wheel, outside the source tree."""

import importlib.util
import os
import subprocess
import sys

import gymnasium
import numpy as np

import echelon_env

for package in ("torch", "stable_baselines3", "sb3_contrib", "supersuit", "numba", "llvmlite"):
    assert importlib.util.find_spec(package) is None, f"{package} is installed without the extra"
    assert package not in sys.modules

assert echelon_env.backend().name == "library", echelon_env.backend()

env = gymnasium.make("echelon/Duel-v1", render_mode="rgb_array")
observation, info = env.reset(seed=0)
observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
assert observation.shape == env.observation_space.shape
assert np.asarray(env.render()).ndim == 3

vector = gymnasium.make_vec("echelon/Skirmish-v1", num_envs=2, vectorization_mode="vector_entry_point")
vector.reset(seed=0)
vector.step(vector.action_space.sample())

parallel = echelon_env.parallel_env("skirmish")
observations, infos = parallel.reset(seed=0)
parallel.step({agent: parallel.action_space(agent).sample() for agent in parallel.agents})

expert = echelon_env.opponents.make("expert@aim_error=0.1", 0, "duel")
assert np.abs(expert.act(echelon_env.BattleEngine("duel").reset([0])[0].copy())).max() > 0

bench = subprocess.run(["echelon", "bench", "--scenarios", "duel", "--seconds", "0.2"], capture_output=True, text=True)
assert bench.returncode == 0, bench.stderr
assert "duel" in bench.stdout

maps = subprocess.run(["echelon", "maps", "--maps", "2", "--recipes", "recipes"], capture_output=True, text=True)
assert maps.returncode == 0, maps.stderr
assert len(echelon_env.MapPool.load("recipes")) == 2

help_page = subprocess.run(["echelon", "--help"], capture_output=True, text=True)
assert help_page.returncode == 0, help_page.stderr
listed = {line.split()[0] for line in help_page.stdout.splitlines() if line.startswith("    ") and line.strip()}
assert {"bench", "card", "maps", "warmup", "evaluate", "train", "demo", "league"} <= listed, help_page.stdout
assert "cannot be used" not in help_page.stdout, help_page.stdout

policy = os.environ["ECHELON_POLICY"]  # a checkpoint: it plays without PyTorch
for player, opponent in ((policy, "champion"), ("champion", "expert@fire_rate=0.5")):
    command = ["echelon", "evaluate", player, "--opponent", opponent, "--battles", "2"]
    played = subprocess.run(command, capture_output=True, text=True)
    assert played.returncode == 0, played.stderr
for opponent in (f"policy:{policy}", "champion", {"champion": 1, "expert": 2}):
    env = gymnasium.make("echelon/Duel-v1", opponent=opponent)
    env.reset(seed=1)
    env.step(env.action_space.sample())
game = ["echelon", "play", "trio", "--opponent", "champion", "--teammate", "champion"]
written = subprocess.run([*game, "--html", "game.html", "--maps", "1"], capture_output=True, text=True)
assert written.returncode == 0, written.stderr

for arguments in (["train", "--out", "run"], ["evaluate", "untrained"], ["league", "standings", "league"]):
    refused = subprocess.run(["echelon", *arguments], capture_output=True, text=True)
    assert refused.returncode == 2, refused
    assert refused.stderr.endswith('pip install "echelon-env[train]"\n'), refused.stderr
    assert refused.stderr.count("\n") == 1, refused.stderr

print("smoke test passed:", echelon_env.__version__, echelon_env.__file__)
