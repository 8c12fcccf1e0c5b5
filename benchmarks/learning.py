"""What the trainer learns, and in what time: ``python -m benchmarks.learning --help``.

Every run is a process of one core, and its minutes are of that core: what else the machine does makes a run last
longer, but not worse. Its folder is like that of `echelon train`, with a `result.json` of the final
policy's battles besides; runs that have one are not repeated.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks import machine
from benchmarks.stock_training import train_stock
from echelon_env.config.schema import nearest_name
from echelon_env.evaluate import BattleNoise, Player
from echelon_env.evaluate.networks import checkpoint_player
from echelon_env.evaluate.statistics import Interval, wilson
from echelon_env.storage.atomic import write_json
from echelon_train.config.files import load_run_config
from echelon_train.config.train import TrainConfig
from echelon_train.policy import BattlePolicy
from echelon_train.policy.sequences import ActionEvaluation
from echelon_train.runs.building import training_maps
from echelon_train.runs.evaluation import evaluate
from echelon_train.runs.folder import read_metrics, read_run_config
from echelon_train.runs.training import train
from echelon_train.vec_env import BattleVecEnv

EVALUATION_SEED = 8
"""Of the maps that final policies are evaluated on."""

BATTLES = 400
"""Of the evaluation of a final policy."""

RESULT_FILE = "result.json"

OTHER_BATTLES = 1_000_000
"""Added to a run's seed: the battles of its evaluation where every battle has a new map."""


@dataclass(frozen=True)
class Experiment:
    """Runs that differ in their seed only."""

    config: str  # name of a shipped run config
    minutes: float  # on a processor that a run may train for; it ends before if its steps are done
    seeds: tuple[int, ...]
    changes: dict[str, str] = field(default_factory=dict)  # of the run config
    stock: dict[str, Any] | None = None  # trained by sb3-contrib's RecurrentPPO, with these changes of its settings
    slim: bool = False  # stock's network made about as small as ours
    fixed_map: bool = False  # evaluated on the one map that it was trained on
    after: str = ""  # experiment whose run of the same seed this one starts from
    stock_entropy: bool = False  # estimated by the log-probability of the actions, as for squashed Gaussians in SB3


FROM_SCRATCH = {
    "steps": "20_000_000", "opponent": "novice", "eval_opponent": "novice",
    "battle.rewards.zone": "0.25", "battle.rewards.outcome": "10", "network.critic": "shared",
    "network.min_std": "0.05",
    "ppo.batch_size": "2048", "ppo.n_epochs": "3", "ppo.learning_rate": "linear:7e-4:7e-5", "ppo.gamma": "0.99",
    "ppo.ent_coef": "linear:0.001:0.0001", "ppo.motion_ent_scale": "1", "ppo.critic_warmup": "0",
}  # fmt: skip
"""The changes of `skirmish` for runs against the novice that start from random weights."""


def _trial(**stock: Any) -> Experiment:
    """A short run with stock's settings changed, to find those that suit it."""
    return Experiment("skirmish", 12, (100,), FROM_SCRATCH, stock=stock)


HANDICAP = {"opponent": '{"expert@auto" = 6, veteran = 2, competent = 1, novice = 1}'}
"""The opponents of `skirmish`, with experts that are held near the learner's strength."""


def _strength(**changes: str) -> Experiment:
    """A run of the shipped config that starts from an imitation of the expert, with some changes."""
    by_key = {name.replace("__", "."): value for name, value in changes.items()}
    return Experiment("skirmish", 30, (1, 2), by_key, after="imitation")


def _ablation(stock_entropy: bool = False, **changes: str) -> Experiment:
    by_key = {name.replace("__", "."): value for name, value in changes.items()}
    return Experiment("quickstart", 10, (1, 2), {"steps": "1_000_000", **by_key}, stock_entropy=stock_entropy)


BEST_TRIAL = {"clip_range": 0.3, "max_grad_norm": 1.0, "n_epochs": 3}
"""Of stock's settings, what won most in the trials, by less than their intervals."""

EXPERIMENTS = {
    "fixed-map": Experiment(
        "skirmish", 30, (1, 2, 3), {**FROM_SCRATCH, "maps": "1", "steps": "10_000_000"}, fixed_map=True
    ),
    "unseen-maps": Experiment("skirmish", 30, (1, 2, 3), FROM_SCRATCH),
    "unseen-maps-stock": Experiment("skirmish", 30, (1,), FROM_SCRATCH, stock=BEST_TRIAL),
    "unseen-maps-stock-slim": Experiment("skirmish", 30, (1,), FROM_SCRATCH, stock=BEST_TRIAL, slim=True),
    "stock-trial": _trial(),
    "stock-trial-fast": _trial(learning_rate=7e-4, batch_size=1024, n_epochs=3),
    "stock-trial-long": _trial(n_steps=256, batch_size=4096),
    "stock-trial-wide-clip": _trial(**BEST_TRIAL),
    "duel": _ablation(),
    "duel-entropy-0": _ablation(ppo__ent_coef="0"),
    "duel-entropy-0.01": _ablation(ppo__ent_coef="0.01"),
    "duel-entropy-0.01-stock": _ablation(stock_entropy=True, ppo__ent_coef="0.01"),
    "duel-plain-returns": _ablation(ppo__normalize_returns="false"),
    "duel-flat": _ablation(network__encoder="flat"),
    "duel-death-5": _ablation(battle__rewards__death="-5"),
    "duel-death-20": _ablation(battle__rewards__death="-20"),
    "duel-gamma-0.995": _ablation(ppo__gamma="0.995"),
    "imitation": Experiment("imitate", 15, (1, 2)),
    "skirmish-whole": Experiment("skirmish", 240, (1, 2), after="imitation"),
    "skirmish-whole-handicap": Experiment("skirmish", 240, (1, 2), HANDICAP, after="imitation"),
    "battle-whole": Experiment("battle", 240, (1,), after="skirmish-whole"),  # the stored run: after that of seed 2
    "skirmish": _strength(),
    "skirmish-handicap": _strength(**HANDICAP),
    "skirmish-messages": _strength(network__communicate="true"),
    "skirmish-default-reward": _strength(battle__rewards__zone="0.25", battle__rewards__outcome="10"),
    "skirmish-team-spirit": _strength(reward_schedules__team_spirit="linear:0:0.5"),
}  # fmt: skip
"""What `docs/learning.md` reports; seeds were named before any of it was trained."""


def run(name: str, seed: int, out: Path) -> dict[str, Any]:
    """Train and evaluate a policy, and store the result."""
    experiment = EXPERIMENTS[name]
    start = {"init": str(folder(out.parent, experiment.after, seed))} if experiment.after else {}
    config = load_run_config(experiment.config, {"seed": str(seed), **start, **experiment.changes})
    if experiment.stock_entropy:
        _forget_entropy()
    began, elapsed = time.process_time(), time.perf_counter()
    if experiment.stock is not None:
        steps, player = train_stock(config, out, 60 * experiment.minutes, experiment.stock, experiment.slim)
    else:
        time_is_up = _interrupt_after(60 * experiment.minutes)
        steps = train(config, out, console=Console(quiet=True)).steps
        if steps < config.steps and not time_is_up.is_set():
            sys.exit(f"{out}: stopped from outside after {steps:,} decisions; no result")
        player = checkpoint_player(out)
    seconds, elapsed = time.process_time() - began, time.perf_counter() - elapsed
    signal.setitimer(signal.ITIMER_PROF, 0)
    return _judge(name, config, player, out, {"steps": steps, "seconds": seconds, "elapsed": elapsed})


def judge(name: str, seed: int, out: Path) -> dict[str, Any]:
    """Evaluate a run that `echelon train` made, perhaps in several parts, and store the result."""
    metrics = read_metrics(out)
    times = {
        "steps": metrics[-1]["time/total_timesteps"],
        "seconds": 60 * max(line.get("time/cpu_minutes", 0.0) for line in metrics),
        "elapsed": _elapsed([line["time/time_elapsed"] for line in metrics if "time/time_elapsed" in line]),
    }
    config = read_run_config(out)
    if config.seed != seed:
        sys.exit(f"{out}: expected a run with seed {seed}, got {config.seed}")
    return _judge(name, config, checkpoint_player(out), out, times)


def _elapsed(seconds: list[float]) -> float:
    """The elapsed time of a run in several parts; each part counts from zero."""
    return sum(before for before, after in itertools.pairwise([*seconds, 0.0]) if after < before)


def _judge(name: str, config: TrainConfig, player: Player, out: Path, times: dict[str, float]) -> dict[str, Any]:
    fixed_map = EXPERIMENTS[name].fixed_map
    wins, battles = won_on_training_maps(player, config) if fixed_map else won_on_unseen_maps(player, config)
    share: Interval = wilson(wins, battles)
    result = {
        "experiment": name, "seed": config.seed, **times, "battles": battles, "wins": share.estimate,
        "low": share.low, "high": share.high, "config": config.to_dict(), "machine": machine.describe(),
    }  # fmt: skip
    write_json(out / RESULT_FILE, result)
    return result


def _interrupt_after(seconds: float) -> Event:
    """Interrupt this process as Ctrl-C does after so many seconds on the processor, and set the event; 0: never."""
    time_is_up = Event()

    def interrupt(*_: Any) -> None:
        time_is_up.set()
        signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    return time_is_up


def _forget_entropy() -> None:
    """Let policies of this process know no entropy."""
    evaluate = BattlePolicy.evaluate

    def without(*arguments: Any) -> ActionEvaluation:
        return evaluate(*arguments)._replace(entropy=None)

    BattlePolicy.evaluate = without  # type: ignore[method-assign]


def won_on_unseen_maps(player: Player, config: TrainConfig) -> tuple[int, int]:
    """Battles won and played on maps that no training has."""
    result = evaluate(player, config.evaluation_opponents, config.battle, num_battles=BATTLES, seed=EVALUATION_SEED)
    return sum(battle.outcome > 0 for battle in result.battles), BATTLES


def won_on_training_maps(player: Player, config: TrainConfig) -> tuple[int, int]:
    """Battles won and played on the run's own maps, but with seeds that it has not had: as many of every place."""
    places = 40
    env = BattleVecEnv(
        config.battle, places, opponent=config.opponent, seed=config.seed + OTHER_BATTLES, maps=training_maps(config)
    )
    policy = player.make(config.battle, BattleNoise(range(places), [EVALUATION_SEED], env.team_size))
    observations = env.reset()
    policy.reset(np.ones(env.num_envs, np.bool_))
    won, played = np.zeros((2, places), np.int64)
    while (played < BATTLES // places).any():
        observations, _, dones, infos = env.step(policy.act(observations))
        policy.reset(dones)
        for place in np.flatnonzero(dones[:: env.team_size] & (played < BATTLES // places)):
            played[place] += 1
            won[place] += infos[place * env.team_size]["outcome"] > 0
    env.close()
    return int(won.sum()), int(played.sum())


def main(arguments: list[str] | None = None) -> int:
    """Run experiments, each run in its own process, and print the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning", description=__doc__)
    add = parser.add_argument
    add("experiments", nargs="*", metavar="EXPERIMENT", help=f"of {', '.join(EXPERIMENTS)} (default: all)")
    add("--out", type=Path, default=Path("runs/learning"), help="folder of the runs' folders (default: %(default)s)")
    add("--jobs", type=int, default=2, help="runs at a time, a core each (default: %(default)s)")
    add("--one", type=int, metavar="SEED", help="a single run, in this process")
    add("--judge", type=int, metavar="SEED", help="evaluate a run that echelon train made in its folder")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.experiments if name not in EXPERIMENTS]
    if unknown:
        parser.error(f"unknown experiment {unknown[0]!r}{nearest_name(unknown[0], EXPERIMENTS)}")
    names = options.experiments or list(EXPERIMENTS)
    if options.judge is not None:
        judge(names[0], options.judge, folder(options.out, names[0], options.judge))
        return 0
    if options.one is not None:
        run(names[0], options.one, folder(options.out, names[0], options.one))
        return 0
    first = dict.fromkeys(EXPERIMENTS[name].after for name in names if EXPERIMENTS[name].after)
    failed = []
    for batch in ([*first], [name for name in names if name not in first]):
        runs = [(name, seed) for name in batch for seed in EXPERIMENTS[name].seeds]
        with ThreadPoolExecutor(options.jobs) as pool:
            failed += [codes for codes in pool.map(lambda each: _in_a_process(*each, options.out), runs) if codes]
    print(table(results(options.out), names))
    return 1 if failed else 0


def folder(out: Path, name: str, seed: int) -> Path:
    """Where the run of an experiment with a seed is."""
    return out / f"{name}-{seed}"


def _in_a_process(name: str, seed: int, out: Path) -> int:
    """Make a run that has not been made yet; what is left of one that was stopped goes. Returns the exit code."""
    place = folder(out, name, seed)
    if (place / RESULT_FILE).exists():
        return 0
    shutil.rmtree(place, ignore_errors=True)
    command = [sys.executable, "-m", "benchmarks.learning", name, "--one", str(seed), "--out", str(out)]
    return subprocess.run(command).returncode


def results(out: Path) -> dict[str, list[dict[str, Any]]]:
    """The stored results, by experiment and seed."""
    found = {}
    for name, experiment in EXPERIMENTS.items():
        files = [folder(out, name, seed) / RESULT_FILE for seed in experiment.seeds]
        made = [json.loads(file.read_text()) for file in files if file.exists()]
        if made:
            found[name] = made
    return found


def table(found: Mapping[str, Sequence[Mapping[str, Any]]], names: Sequence[str]) -> str:
    """The runs of some experiments as a table in Markdown, the machines that they had, and what has not been run."""
    lines = [
        "| run | seed | decisions | CPU minutes | elapsed minutes | won in training | battles won |",
        "|---|---|---|---|---|---|---|",
    ]
    processors: dict[str, list[str]] = {}
    for name in names:
        for one in found.get(name, ()):
            won = f"{one['wins']:.1%} [{one['low']:.0%}, {one['high']:.0%}]"
            shares = [share for _, share in one.get("curve", ())]
            mean = f"{np.mean(shares):.1%}" if shares else "-"
            steps, minutes = f"{one['steps'] / 1e6:.2f}M", f"{one['seconds'] / 60:.0f}"
            elapsed = f"{one['elapsed'] / 60:.0f}" if "elapsed" in one else "-"
            lines.append(f"| {name} | {one['seed']} | {steps} | {minutes} | {elapsed} | {mean} | {won} |")
            processors.setdefault(one["machine"]["processor"], []).append(f"{name} {one['seed']}")
    if len(processors) > 1:
        on = "; ".join(f"{', '.join(runs)} on {processor}" for processor, runs in processors.items())
        lines += ["", f"Minutes are of different processors: {on}."]
    missing = [f"{name}, seed {seed}" for name in names for seed in _not_run(found, name)]
    if missing:
        lines += ["", f"Not run yet: {'; '.join(missing)}."]
    return "\n".join(lines)


def _not_run(found: Mapping[str, Sequence[Mapping[str, Any]]], name: str) -> list[int]:
    done = {one["seed"] for one in found.get(name, ())}
    return [seed for seed in EXPERIMENTS[name].seeds if seed not in done]


if __name__ == "__main__":
    sys.exit(main())
