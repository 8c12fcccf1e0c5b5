"""A custom scenario: a TOML file can replace a scenario's name, and errors name the line."""

import argparse
from pathlib import Path

import echelon_env

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--scenario", type=Path, default=Path(__file__).with_name("canyon_hunt.toml"))
parser.add_argument("--out", type=Path, default=Path("broken.toml"), help="path for a file with an error")
arguments = parser.parse_args()

scenario = echelon_env.load_scenario(arguments.scenario)
print(scenario.description)

env = echelon_env.parallel_env(arguments.scenario)
env.reset(seed=1)
decisions = 0
while env.agents:
    _, _, _, _, infos = env.step({agent: env.action_space(agent).sample() for agent in env.agents})
    decisions += 1
survivors = sorted(agent for agent, info in infos.items() if info["alive"])
reason = next(iter(infos.values()))["reason"]
print(f"{decisions} decisions, over by {reason}; alive: {survivors}")
env.close()

# Unknown fields and invalid values are errors that state the place and the expected value.
arguments.out.write_text(arguments.scenario.read_text().replace("size = 64", "siez = 64"))
try:
    echelon_env.load_scenario(arguments.out)
except echelon_env.ConfigError as error:
    print("error:", error)
