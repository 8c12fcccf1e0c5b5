"""Gymnasium: one mech with scripted team-mates, controlled by a rule that reads observation streams by name."""

import argparse

import gymnasium

import echelon_env  # noqa: F401  (registers the environments)
from echelon_env.layout import Contact, Objective

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--env", default="echelon_env:echelon/Skirmish-v1")
parser.add_argument("--opponent", default="trivial", help="level of the other team")
arguments = parser.parse_args()

env = gymnasium.make(
    arguments.env, control="pilot", pilot=1, opponent=arguments.opponent, observation="dict", action="dict"
)
env.action_space.seed(0)
observation, info = env.reset(seed=3)
done = False
while not done:
    objective, nearest_enemy = observation["objective"], observation["contacts"][0]
    action = env.action_space.sample()
    action["motion"][:] = (
        objective[Objective.DIRECTION_FORWARD],  # throttle
        objective[Objective.DIRECTION_LEFT],  # strafe
        0.0,  # jet
        nearest_enemy[Contact.DIRECTION_LEFT],  # turn; 0 while no enemy is visible
    )
    action["triggers"][:] = (1, 0, 1, 0, 0)  # primary and tertiary weapon
    action["target"] = 1  # the first contact
    observation, reward, terminated, truncated, info = env.step(action)
    done = terminated or truncated
record = dict(zip(env.metadata["episode_statistics"], info["episode_statistics"], strict=True))
print(f"return {record['r']:.1f} in {record['l']:.0f} decisions, {record['damage_dealt']:.0f} hit points of damage")
outcome = {1: "won", 0: "drawn", -1: "lost"}[info["outcome"]] if info["reason"] else "still in progress"
print("survived" if info["alive"] else "died", "- the battle is", outcome)
env.close()
