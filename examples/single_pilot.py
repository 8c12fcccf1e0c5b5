"""Gymnasium: one mech among scripted team-mates, flown by a rule that reads named features."""

import gymnasium
import numpy as np

import echelon_env  # noqa: F401  (registers the environments)
from echelon_env.actions import Action
from echelon_env.observations import STREAMS, Contact, Objective

OBJECTIVE, CONTACTS = STREAMS["objective"].start, STREAMS["contacts"].start

env = gymnasium.make("echelon/Skirmish-v0", control="pilot", pilot=1, opponent="trivial")
observation, info = env.reset(seed=3)
done, total = False, 0.0
while not done:
    action = np.zeros(env.action_space.shape, np.float32)
    action[Action.THROTTLE] = observation[OBJECTIVE + Objective.DIRECTION_FORWARD]
    action[Action.STRAFE] = observation[OBJECTIVE + Objective.DIRECTION_LEFT]
    action[Action.TURN] = observation[CONTACTS + Contact.DIRECTION_LEFT]
    action[[Action.PRIMARY, Action.TERTIARY]] = 1.0
    observation, reward, terminated, truncated, info = env.step(action)
    total += reward
    done = terminated or truncated
print(f"return {total:.1f}, alive at the end: {bool(info['alive'])}, outcome: {info.get('outcome', 'still fought')}")
