"""What is in the table: scenarios with their budgets, methods, and the rows that they make."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from echelon_env.champions import champion_of
from echelon_env.config.opponent import CHAMPION
from echelon_env.config.scenario import make_config
from echelon_env.evaluate.players import BASELINES

SUITE = "echelon-eval-v3"
"""The suite of the table."""

GENERALIZATION = "echelon-generalization-v2"
"""The suite of biomes and team sizes that runs of `skirmish-seen` do not train on."""


@dataclass(frozen=True)
class Budget:
    """What a method may use in a scenario."""

    minutes: float  # of one core, training only
    seeds: tuple[int, ...]
    battles: int  # stepped in parallel


BUDGETS = {
    "duel": Budget(15, (1, 2, 3), 160),
    "skirmish": Budget(45, (1, 2), 64),
    "battle": Budget(60, (1,), 32),
    "skirmish-seen": Budget(45, (1, 2), 64),
}
"""By scenario, in the order of the table; the last one trains on twelve of the sixteen biomes."""


TABLE = ("duel", "skirmish", "battle")
"""The scenarios of the table."""


@dataclass(frozen=True)
class Method:
    """A row of the table before its seed."""

    title: str
    scenarios: tuple[str, ...] = ("duel", "skirmish")
    changes: Mapping[str, str] | None = None
    """Of the trainer's settings from random weights, `FROM_SCRATCH`; None of other methods."""


METHODS = {
    "ppo": Method("PPO (stable-baselines3)"),
    "recurrent-ppo": Method("RecurrentPPO (sb3-contrib)", ("duel", "skirmish", "battle")),
    "maskable-ppo": Method("MaskablePPO (sb3-contrib), discrete actions"),
    "cleanrl": Method("PPO in one file (examples/cleanrl_ppo.py), discrete actions"),
    "scratch": Method("echelon_train from random weights", changes={}),
    "mappo": Method("the same with MAPPO", ("duel", "skirmish", "battle"), {"network.critic": "mappo"}),
    "imitation": Method("echelon imitate", ("duel", "skirmish", "battle")),
    "imitation-ppo": Method("echelon imitate, then echelon train", ("duel", "skirmish", "battle", "skirmish-seen")),
}
"""The methods of the table that are trained, by name."""

ABLATION = Budget(8, (1, 2, 3, 4, 5), 64)
"""Of each of the `ABLATIONS`."""

_THREE_EPOCHS = {"ppo.n_epochs": "3"}  # what the ablations are changes of

ABLATIONS = {
    name: Method(title, ("skirmish",), _THREE_EPOCHS | changes)
    for name, title, changes in (
        ("no-change", "none", {}),
        ("no-memory", "without memory", {"network.memory": "false"}),
        ("chunk-32", "chunks of 32 decisions (16)", {"ppo.chunk": "32"}),
        ("lambda-0.8", "lambda 0.8 (0.9)", {"ppo.gae_lambda": "0.8"}),
        ("epochs-2", "2 epochs (3)", {"ppo.n_epochs": "2"}),
        ("epochs-1", "1 epoch (3)", {"ppo.n_epochs": "1"}),
        ("critic-central", "critic `central` (`shared`)", {"network.critic": "central"}),
        ("critic-ippo", "critic `ippo`", {"network.critic": "ippo"}),
        ("critic-mappo", "critic `mappo`", {"network.critic": "mappo"}),
        ("central-2", "2 epochs, critic `central`", {"ppo.n_epochs": "2", "network.critic": "central"}),
        (
            "together",
            "2 epochs, chunks of 32, critic `mappo`",
            {"ppo.n_epochs": "2", "ppo.chunk": "32", "network.critic": "mappo"},
        ),
    )
}
"""Changes of `scratch` with three epochs, each in short runs: they are on the page of the experiments."""

TRAINED = ChainMap(METHODS, ABLATIONS)
"""All that are trained, by name."""

REFERENCES = tuple(reversed(BASELINES))
"""Players that are not trained here."""

CHAMPION_COSTS = {"duel": (8_700_000, 24.0), "skirmish": (58_800_000, 220.0)}
"""Decisions and minutes of a core in the training of the champions and of what they started from."""


def champion_cost(scenario: str) -> tuple[float, float]:
    """The `CHAMPION_COSTS` of the champion of a scenario."""
    return CHAMPION_COSTS[champion_of(make_config(scenario))]


@dataclass(frozen=True)
class Run:
    """A training run of the table, or a player that is not trained here."""

    scenario: str
    method: str
    seed: int | None  # None of `REFERENCES`

    def __str__(self) -> str:
        return "-".join(map(str, filter(None, (self.scenario, self.method, self.seed))))


def budget_of(method: str, scenario: str) -> Budget:
    """What a method of the table or of the ablations may use."""
    return ABLATION if method in ABLATIONS else BUDGETS[scenario]


def planned() -> Iterator[Run]:
    """The references, the ablations, then the runs of the table, the first seeds of all methods first."""
    for scenario in BUDGETS:
        names = (CHAMPION, "expert") if scenario == "skirmish-seen" else REFERENCES
        yield from (Run(scenario, name, None) for name in names)
    for seed in ABLATION.seeds:
        yield from (Run(method.scenarios[0], name, seed) for name, method in ABLATIONS.items())
    most = max(len(budget.seeds) for budget in BUDGETS.values())
    for number in range(most):
        for scenario, budget in BUDGETS.items():
            for name, method in METHODS.items():
                if scenario in method.scenarios and number < len(budget.seeds):
                    yield Run(scenario, name, budget.seeds[number])


def evaluations(run: Run) -> list[tuple[str, tuple[str, ...]]]:
    """The suites that a run is evaluated on, with the scenarios."""
    general = (GENERALIZATION, ("skirmish-seen", "skirmish-unseen", "trio", "octet"))
    if run.scenario == "skirmish-seen":
        return [general]
    table = (SUITE, (run.scenario,))
    return [table, general] if (run.scenario, run.method) == ("skirmish", "imitation-ppo") else [table]
