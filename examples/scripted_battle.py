"""Two scripted teams fight on the batched engine; the battle becomes an animated GIF."""

import sys

import numpy as np

from echelon_env import BattleEngine, opponents
from echelon_env.render import render_frame, save_gif

engine = BattleEngine("skirmish", num_battles=1)
blue, red = opponents.make("novice", seed=0), opponents.make("trivial", seed=1)
observations = engine.reset([7])
team = len(engine.config.blue)
frames = []
while not engine.battle_over[0]:
    actions = np.concatenate([blue.act(observations[0, :team]), red.act(observations[0, team:])])
    observations, rewards, terminated, truncated = engine.step(actions[None])
    frames.append(render_frame(engine.config, engine.state, pixels=400))
path = sys.argv[1] if len(sys.argv) > 1 else "battle.gif"
save_gif(frames, path)
print(f"winner: {('blue', 'red', 'nobody')[engine.winner[0]]}; film: {path}")
