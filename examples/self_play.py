"""Self-play with a stock algorithm of stable-baselines3: a duel against the policy's own past, without a league.

    python examples/self_play.py --steps 2_000_000 --folder runs/self-play
    python examples/self_play.py --algorithm ppo

The same command continues a training that was interrupted. Now and then the policy plays the scripted novice, which it
never meets in training: evaluations.csv has the battles won, and win_rate.png the curve.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, PercentFormatter
from sb3_contrib import RecurrentPPO
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize

from echelon_env.evaluate.estimates import wilson
from echelon_train import BattleVecEnv, PastPolicies, SelfPlayCallback, battle_config

BATTLE = battle_config("duel")
BATTLES = 32
FILE = "training.pt"
NETWORK = {"net_arch": [128, 64], "log_std_init": -1.0}  # actions are in [-1, 1]
LSTM = {"lstm_hidden_size": 64, "shared_lstm": True, "enable_critic_lstm": False}
ALGORITHMS = {"ppo": (PPO, "MlpPolicy", NETWORK), "recurrent": (RecurrentPPO, "MlpLstmPolicy", NETWORK | LSTM)}
SETTINGS = {"n_steps": 128, "batch_size": 1024, "n_epochs": 5, "learning_rate": 5e-4, "device": "cpu"}


class EvaluateAndSave(BaseCallback):
    """Plays the novice and saves the training between two rollouts, every `every` steps."""

    def __init__(self, folder, every, battles):
        super().__init__()
        self.folder, self.every, self.battles, self.rows = folder, every, battles, []

    def _on_step(self):
        return True

    def _on_training_start(self):
        if (self.folder / "evaluations.csv").exists():
            rows = np.loadtxt(self.folder / "evaluations.csv", np.int64, delimiter=",", ndmin=2)
            self.rows = [row for row in rows.tolist() if row[0] <= self.num_timesteps]

    def _on_rollout_start(self):
        self._evaluate_and_save(self.every)

    def _on_training_end(self):
        self._evaluate_and_save(1)

    def _evaluate_and_save(self, every):
        """After `every` further steps write everything; last the training, which can continue from there."""
        if self.rows and self.num_timesteps < self.rows[-1][0] + every:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        wins = battles_won(self.model, "novice", self.battles)
        self.logger.record("eval/novice_win_rate", wins / self.battles)
        self.rows.append([self.num_timesteps, self.battles, wins])
        header = "steps,battles,won"
        np.savetxt(self.folder / "evaluations.csv", self.rows, "%d", delimiter=",", header=header)
        save_curve(self.folder / "win_rate.png", self.rows)
        save(self.folder, self.model, self.training_env)


def save(folder, model, env):
    """Write the training into one file, whole or not at all."""
    rewards = env.ret_rms
    state = {
        "parameters": model.get_parameters(),
        "steps": model.num_timesteps,
        "rewards": {"mean": float(rewards.mean), "var": float(rewards.var), "count": float(rewards.count)},
    }
    torch.save(state, folder / "training.tmp.pt")
    (folder / "training.tmp.pt").replace(folder / FILE)


def restore(folder, model, env):
    """Continue a training. `weights_only` reads tensors and numbers: a file from elsewhere cannot execute code.

    A model.zip of stable-baselines3 and a saved `VecNormalize` can, as pickles do: load your own only.
    """
    state = torch.load(folder / FILE, weights_only=True)
    model.set_parameters(state["parameters"])
    model.num_timesteps = state["steps"]
    for name, value in state["rewards"].items():
        setattr(env.ret_rms, name, np.float64(value))


def save_curve(path, rows):
    """Draw the share of won battles over the steps, with its 95 % interval."""
    steps = [steps for steps, _, _ in rows]
    shares = [wilson(wins, battles) for _, battles, wins in rows]
    figure = Figure((7, 3.5), dpi=100, layout="constrained")
    axes = figure.subplots()
    axes.fill_between(steps, [each.low for each in shares], [each.high for each in shares], alpha=0.2, linewidth=0)
    axes.plot(steps, [each.estimate for each in shares], marker=".")
    axes.set(xlabel="decisions of the learner in training", ylabel="battles won against the novice", ylim=(-0.03, 1.03))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


def make_env(opponent, seed=0):
    """Battles with normalised rewards."""
    return VecNormalize(BattleVecEnv(BATTLE, BATTLES, opponent=opponent, maps=500, seed=seed), norm_obs=False)


def battles_won(model, opponent, battles):
    """How many of `battles` battles on maps that it has not seen a model wins against an opponent."""
    env, outcomes = BattleVecEnv(BATTLE, BATTLES, opponent=opponent, seed=1), []

    def note(step, _):
        if step["done"]:
            outcomes.append(step["info"]["outcome"])

    evaluate_policy(model, env, battles, deterministic=False, callback=note)
    env.close()
    return sum(outcome > 0 for outcome in outcomes)


def main():
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--algorithm", choices=ALGORITHMS, default="recurrent")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--every", type=int, default=50_000)
    parser.add_argument("--battles", type=int, default=32, help="of each evaluation")
    parser.add_argument("--folder", type=Path, default=Path("runs/self-play"))
    args = parser.parse_args()
    torch.set_num_threads(1)  # its matrices are small, and threads wait for each other
    algorithm, policy, network = ALGORITHMS[args.algorithm]
    opponents = PastPolicies(BATTLE)
    env = make_env(opponents)
    model = algorithm(policy, env, seed=0, verbose=1, policy_kwargs=network, **SETTINGS)
    if (args.folder / FILE).exists():
        restore(args.folder, model, env)
    callback = SelfPlayCallback(opponents, every=args.every, folder=args.folder / "opponents", verbose=1)
    steps = max(0, args.steps - model.num_timesteps)
    evaluate = EvaluateAndSave(args.folder, args.every, args.battles)
    model.learn(steps, callback=[callback, evaluate], reset_num_timesteps=False)
    env.close()
    steps, battles, wins = evaluate.rows[-1]
    print(f"{steps:,} steps: wins {wins} of {battles} battles against the novice")


if __name__ == "__main__":
    main()
