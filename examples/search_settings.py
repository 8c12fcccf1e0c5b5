"""Search for settings: Optuna proposes those of every trial, a training, and ends trials that do worse than most.

The record is search.journal: the same command adds trials, and several terminals share it. A trial that is stopped by
Ctrl-C, or whose numbers become infinite, counts as failed.
"""

import argparse

import optuna
from optuna.storages import JournalStorage, journal

from echelon_train import TrainError, load_run_config, train

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--trials", type=int, default=20)
parser.add_argument("--steps", type=int, default=400_000, help="decisions of each trial")
arguments = parser.parse_args()


def objective(trial):
    """Train with the proposed settings; the share of battles won in the last evaluation."""
    settings = {
        "steps": arguments.steps,
        "ppo.learning_rate": trial.suggest_float("ppo.learning_rate", 1e-4, 3e-3, log=True),
        "network.encoder": trial.suggest_categorical("network.encoder", ["sets", "flat"]),
    }
    config = load_run_config("quickstart", {key: str(value) for key, value in settings.items()})
    scores = []

    def should_continue(steps, evaluation):
        trial.report(evaluation.wins.estimate, len(scores))  # trials are compared after as many evaluations
        scores.append(evaluation.wins.estimate)
        return not trial.should_prune()

    result = train(config, f"runs/search-{trial.number}", should_continue=should_continue)
    if not result.done:
        raise KeyboardInterrupt if result.interrupted else optuna.TrialPruned
    return scores[-1]


storage = JournalStorage(journal.JournalFileBackend("search.journal"))
pruner = optuna.pruners.MedianPruner(n_warmup_steps=1)  # not at the first evaluation, of the initial weights
study = optuna.create_study(
    storage=storage, pruner=pruner, study_name="search", direction="maximize", load_if_exists=True
)
study.optimize(objective, arguments.trials, catch=TrainError)  # with TPE, Optuna's default sampler
print(f"best: trial {study.best_trial.number}, {study.best_value:.0%} won, {study.best_params}")
