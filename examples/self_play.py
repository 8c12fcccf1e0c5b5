"""Self-play with a stock algorithm of stable-baselines3: a duel against the policy's own past, without a league.

    python examples/self_play.py --steps 2_000_000 --folder runs/self-play
    python examples/self_play.py --algorithm ppo

The same command continues a training that was interrupted. At the end the policy plays the scripted novice, which it
has never met.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecNormalize

from echelon_train import BattleVecEnv, PastPolicies, SelfPlayCallback, battle_config

BATTLE = battle_config("duel")
BATTLES = 32
NETWORK = {"net_arch": [128, 64], "log_std_init": -1.0}  # actions are in [-1, 1]
LSTM = {"lstm_hidden_size": 64, "shared_lstm": True, "enable_critic_lstm": False}
ALGORITHMS = {"ppo": (PPO, "MlpPolicy", NETWORK), "recurrent": (RecurrentPPO, "MlpLstmPolicy", NETWORK | LSTM)}
SETTINGS = {"n_steps": 128, "batch_size": 1024, "n_epochs": 5, "learning_rate": 5e-4, "device": "cpu"}


class Save(BaseCallback):
    """Saves the model and the statistics of the rewards between two rollouts, every `every` steps."""

    def __init__(self, folder, every):
        super().__init__()
        self.folder, self.every, self.saved = folder, every, 0

    def _on_step(self):
        return True

    def _on_rollout_start(self):
        if self.num_timesteps >= self.saved + self.every:
            self.save()

    def save(self):
        """Write both; the model, which says that there is something to continue, last."""
        self.saved = self.num_timesteps
        self.training_env.save(str(self.folder / "rewards.pkl"))
        self.model.save(self.folder / "model.tmp.zip")
        (self.folder / "model.tmp.zip").replace(self.folder / "model.zip")


def make_env(opponent, seed=0):
    """Battles with normalised rewards."""
    return VecNormalize(BattleVecEnv(BATTLE, BATTLES, opponent=opponent, maps=500, seed=seed), norm_obs=False)


def win_rate(model, opponent, battles):
    """The share of battles that a model wins against an opponent."""
    env = BattleVecEnv(BATTLE, BATTLES, opponent=opponent, seed=1)
    observations, state, begins = env.reset(), None, np.ones(env.num_envs, np.bool_)
    outcomes = []
    while len(outcomes) < battles:
        actions, state = model.predict(observations, state, begins)
        observations, _, begins, infos = env.step(actions)
        outcomes += [info["outcome"] for info in infos[:: env.team_size] if "outcome" in info]
    env.close()
    return np.mean(np.array(outcomes[:battles]) > 0)


def main():
    """Train, and play the novice."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--algorithm", choices=ALGORITHMS, default="recurrent")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--every", type=int, default=50_000)
    parser.add_argument("--battles", type=int, default=32)
    parser.add_argument("--folder", type=Path, default=Path("runs/self-play"))
    args = parser.parse_args()
    torch.set_num_threads(1)  # its matrices are small, and threads wait for each other
    algorithm, policy, network = ALGORITHMS[args.algorithm]
    opponents = PastPolicies(BATTLE)
    env, file = make_env(opponents), args.folder / "model.zip"
    if file.exists():
        env = VecNormalize.load(str(args.folder / "rewards.pkl"), env.venv)
        model = algorithm.load(file, env=env)
    else:
        model = algorithm(policy, env, seed=0, verbose=1, policy_kwargs=network, **SETTINGS)
    callback = SelfPlayCallback(opponents, every=args.every, folder=args.folder / "opponents", verbose=1)
    steps = max(0, args.steps - model.num_timesteps)
    save = Save(args.folder, args.every)
    model.learn(steps, callback=[callback, save], reset_num_timesteps=False)
    save.save()
    env.close()
    share = win_rate(model, "novice", args.battles)
    print(f"{model.num_timesteps:,} steps: wins {share:.0%} of {args.battles} battles against the novice")


if __name__ == "__main__":
    main()
