"""Methods of `echelon_train`."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from benchmarks.baselines.budget import Clock
from benchmarks.baselines.plan import TRAINED, budget_of
from echelon_env.evaluate import Player
from echelon_env.evaluate.networks import checkpoint_player
from echelon_train.config.files import load_run_config
from echelon_train.config.train import TrainConfig
from echelon_train.runs.folder import read_metrics
from echelon_train.runs.training import resume, train

IMITATION, FINAL = "imitation", "run"
"""Folders of the parts of a run."""

LEVELS = "{trivial = 1, novice = 1, competent = 1, veteran = 1, expert = 1}"
"""Opponents of other libraries' methods: those of the suite."""

OWN_REWARDS = {"battle.rewards.zone": "0.25", "battle.rewards.outcome": "10"}
"""The scenarios' own weights, where the run configs have others."""

LESSONS = (
    "'novice'",
    "{competent = 3, novice = 1}",
    "{veteran = 3, competent = 2, novice = 1}",
    "{expert = 4, veteran = 3, competent = 2, novice = 1}",
)
"""Opponents of runs from random weights, one after another."""

FROM_SCRATCH = {"curriculum.opponents": f"[{', '.join(LESSONS)}]", "curriculum.demote": "-1"}
"""The changes of `quickstart` for runs from random weights, beside the scenario."""

_IMITATED = {"duel": 1_000_000}
"""Decisions of the imitation before PPO, where they are not those of the run config."""

POINTS = 32
"""Of a learning curve, at most."""

_UNBOUNDED = "1_000_000_000"  # decisions: the time ends a run, and its schedules follow the time


def configs(method: str, scenario: str, seed: int, out: Path, minutes: float) -> list[tuple[Path, TrainConfig]]:
    """The parts of a run in order, each with its folder; the last one may take `minutes` of the processor."""
    budget = budget_of(method, scenario)
    common = {
        "scenario": scenario, "seed": str(seed), "battles": str(budget.battles), "eval_every": "0",
        "checkpoint_every": "250_000", "device": "cpu",
    }  # fmt: skip
    steps = {"steps": _UNBOUNDED, "max_cpu_minutes": f"{minutes:.3f}"}
    changes = TRAINED[method].changes
    if changes is not None:
        del common["scenario"]
        stages = {"curriculum": repr([scenario] * len(LESSONS))}
        return [(out / FINAL, load_run_config("quickstart", {**stages, **FROM_SCRATCH, **common, **steps, **changes}))]
    if method == "imitation":
        return [(out / FINAL, load_run_config("imitate", common | steps))]
    shared = {"network.critic": "shared"} if scenario == "duel" else {}
    name = scenario if scenario in ("duel", "battle") else "skirmish"
    first = common | shared | {"steps": str(_IMITATED.get(scenario, 2_500_000))}
    then = common | steps | {"init": str(out / IMITATION)}
    return [
        (out / IMITATION, load_run_config("imitate", first)),
        (out / FINAL, load_run_config(name, then)),
    ]


def run(method: str, scenario: str, seed: int, out: Path, clock: Clock) -> int:
    """Train until the time is over, or go on. Returns the decisions."""
    minutes = clock.limit / 60
    for folder, config in configs(method, scenario, seed, out, minutes)[:-1]:
        if not (folder.exists() and _last(folder, "time/total_timesteps") >= config.steps):
            _train(folder, config)
        minutes -= _last(folder, "time/cpu_minutes")
    parts = configs(method, scenario, seed, out, max(minutes, 1e-3))
    _train(*parts[-1])
    clock.before = 60.0 * sum(_last(folder, "time/cpu_minutes") for folder, _ in parts) - (clock.used - clock.before)
    return sum(int(_last(folder, "time/total_timesteps")) for folder, _ in parts)


def _train(folder: Path, config: TrainConfig) -> None:
    result = resume(folder, console=_QUIET) if folder.exists() else train(config, folder, console=_QUIET)
    if not result.done:
        raise KeyboardInterrupt(f"{folder}: stopped from outside after {result.steps:,} decisions")


_QUIET = Console(quiet=True)


def _last(folder: Path, name: str) -> float:
    values = [line[name] for line in read_metrics(folder) if name in line] if folder.exists() else []
    return float(values[-1]) if values else 0.0


def curve(out: Path) -> list[tuple[float, int, float]]:
    """Minutes, decisions and win rate in the last training battles, at most `POINTS` times in a run's last part."""
    lines = [line for line in read_metrics(out / FINAL) if "battle/win_rate" in line]
    chosen = lines[:: -(-len(lines) // POINTS)] if lines else []
    return [
        (round(line["time/cpu_minutes"], 2), int(line["time/total_timesteps"]), round(line["battle/win_rate"], 3))
        for line in chosen
    ]


def player(method: str, out: Path) -> Player:
    """The policy of the last part; it samples its actions."""
    return checkpoint_player(out / FINAL, name=method)
