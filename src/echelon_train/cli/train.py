"""Train a policy against levels, other policies or itself, or in a league."""

from __future__ import annotations

import argparse
import functools
import json
import shlex
import textwrap
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from echelon_env.cli.arguments import CommandParser, merge_settings, positive
from echelon_env.cli.output import command
from echelon_env.config.curriculum import Curriculum
from echelon_env.config.schema import ConfigError
from echelon_env.config.toml_file import parse_value
from echelon_env.networks.config import NetworkConfig
from echelon_env.storage.atomic import free_path
from echelon_train.config.files import (
    Setting,
    load_run_config,
    run_config_descriptions,
    run_config_names,
    settings,
)
from echelon_train.config.league import LeagueConfig
from echelon_train.config.ppo import PPOConfig
from echelon_train.config.train import CHANGEABLE, TrainConfig
from echelon_train.errors import TrainError

if TYPE_CHECKING:
    from echelon_train.runs.experiment import Experiment
    from echelon_train.runs.run import TrainResult

EXPECTED_ERRORS = (TrainError,)

_DEFAULT = "quickstart"
_LEAGUE = "league"  # the default config of a run in a league
RUNS = Path("runs")
_CONFIG = "config."  # prefix of the parsed arguments that override the run config
_GROUPS = {
    "": "the run",
    "network": "the network",
    "ppo": "the algorithm",
    "reward_schedules": "schedules of the reward weights",
    "league": "the league",
}
_SHORT = {
    "max_battles": "--games",
    "league.path": "--league",
    "league.role": "--role",
    "league.agent": "--agent",
}

COMMON = (
    "scenario", "opponent", "init", "steps", "max_minutes", "seed", "device", "league.path",
)  # fmt: skip
"""Settings that people change, which the short help has."""

FORMATTER = functools.partial(argparse.RawDescriptionHelpFormatter, max_help_position=21)

_FEW = 10
"""Seeds below which an interval over them is a rough one."""

_SHORT_EPILOG = """\
Defaults are those of quickstart. --help-all has all settings.

examples:
  echelon train skirmish --init runs/imitate-skirmish --seed 1
  echelon train --resume runs/skirmish --steps 40_000_000
"""

_EPILOG = """\
run configs of the package:
{configs}

Defaults are those of quickstart; other run configs have values of their own. A SCHEDULE is a number,
linear:START:END or cosine:START:END.

examples:
  echelon train
  echelon train skirmish --init runs/imitate-skirmish --seed 1
  echelon train my-run.toml --set battle.rewards.death=-5
  echelon train --league leagues/first --role main
  echelon train duel --seeds 5
  echelon train --resume runs/skirmish --steps 40_000_000

A resumed run keeps its settings. --resume accepts new values of
{changeable}
"""


def add_arguments(parser: CommandParser) -> None:
    """Declare the command's options, one for every setting of a run."""
    parser.usage = "echelon train [CONFIG] [options]\n       echelon train --resume RUN [options]"
    parser.formatter_class = FORMATTER
    parser.epilog = _EPILOG.format(configs=_described_configs(), changeable=textwrap.fill(f"{_changeable()}.", 80))
    parser.allow_abbrev = False  # a new setting could change what a shortened name means
    rare = parser.add_full_help(_SHORT_EPILOG)
    add = parser.add_argument
    names = ", ".join(run_config_names())
    default = f"{_DEFAULT}; with --league, {_LEAGUE}"
    add("config", nargs="?", metavar="CONFIG", help=f"{names}, or a TOML file (default: {default})")
    add(
        "--resume",
        type=Path,
        metavar="RUN",
        help="continue the run in this folder",
    )
    add(
        "--seeds",
        type=positive,
        metavar="N",
        help="train with N seeds, and summarise them",
    )
    add_run_options(parser, f"{RUNS}/CONFIG")
    rare += _add_battles(parser)
    rare += add_settings(parser, load_run_config(_DEFAULT))


def add_run_options(parser: argparse.ArgumentParser, folder: str) -> None:
    """Declare the options of a new run besides its settings; `folder` names the default of its folder."""
    add = parser.add_argument
    add(
        "--out",
        type=Path,
        metavar="FOLDER",
        help=f"new folder for the run (default: {folder})",
    )
    add(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any setting, such as battle.rewards.death=-5",
    )


def add_settings(
    parser: argparse.ArgumentParser, config: TrainConfig, common: Collection[str] = COMMON
) -> list[argparse.Action]:
    """Declare one option for every setting of a run, except those of its battles; `config` has the defaults.

    Returns those that are not `common`.
    """
    groups = {path: parser.add_argument_group(title) for path, title in _GROUPS.items()}
    rare = []
    for setting in settings(config=config):
        group = groups[setting.key.rpartition(".")[0]]
        action = group.add_argument(
            option(setting.key), dest=_CONFIG + setting.key, metavar=setting.metavar, help=_help(setting)
        )
        if setting.key not in common:
            rare.append(action)
    return rare


def run(args: argparse.Namespace) -> int:
    """Train and print the path of the checkpoint. Returns 130 after Ctrl-C."""
    overrides = overrides_of(args)
    if args.resume is not None:
        return _resume(args, overrides)
    default = _LEAGUE if "league.path" in overrides else _DEFAULT
    config = load_run_config(args.config or default, overrides)
    check_league(config, overrides)
    name = Path(args.config).stem if args.config else "-".join(Path(each).stem for each in scenario_names(overrides))
    name = name or ("curriculum" if "curriculum" in overrides else default)
    if args.seeds is not None:
        return _train_seeds(config, args.out or free_path(RUNS / name), args.seeds)
    return train_and_report(config, args.out, name)


def scenario_names(overrides: Mapping[str, str]) -> list[str]:
    """The names or files of the scenarios that the command line gives."""
    given = parse_value(overrides["scenario"]) if "scenario" in overrides else []
    return given if isinstance(given, list) else [given]


def check_league(config: TrainConfig, overrides: Mapping[str, str]) -> None:
    """Raise `ConfigError` for settings of a league in a run without one."""
    if config.league.path:
        return
    if config.league != LeagueConfig() or any(key.startswith("league.") for key in overrides):
        raise ConfigError("league.path: expected the folder of a league, see --league: this run has settings of one")


def train_and_report(
    config: TrainConfig,
    out: Path | None,
    name: str,
    more: Callable[[TrainResult, Path], list[str]] = lambda result, out: [],
) -> int:
    """Train in the folder `out`, or in a free one called `name`, and print where the result is.

    `more` are further lines about the result in a folder. Returns 130 after Ctrl-C.
    """
    from echelon_train.runs.training import train

    out = out or free_path(RUNS / name)
    result = train(config, out)
    code = _report(result, out)
    print(*(f"{line}\n" for line in more(result, out)), sep="", end="")
    return code


def _resume(args: argparse.Namespace, overrides: dict[str, str]) -> int:
    """Continue a run; only `CHANGEABLE` settings may differ."""
    from echelon_train.runs.folder import SEEDS_FILE

    fixed = [name for name in ("config", "out", "seeds") if getattr(args, name) is not None]
    if (args.resume / SEEDS_FILE).exists():
        from echelon_train.runs.experiment import resume_seeds

        if fixed or overrides:
            raise ConfigError(
                f"--resume continues an experiment of several seeds as it is, without {', '.join([*fixed, *overrides])}"
            )
        return _report_seeds(resume_seeds(args.resume), args.resume)
    fixed += [key for key in overrides if key not in CHANGEABLE]
    if fixed:
        raise ConfigError(
            f"--resume continues the run with its settings: it accepts {_changeable()}, but not {', '.join(fixed)}"
        )
    changes = {key: parse_value(text) for key, text in overrides.items()}
    from echelon_train.runs.training import resume

    return _report(resume(args.resume, **changes), args.resume)


def _train_seeds(config: TrainConfig, out: Path, count: int) -> int:
    from echelon_train.runs.experiment import train_seeds

    return _report_seeds(train_seeds(config, out, count), out)


def _report_seeds(experiment: Experiment, out: Path) -> int:
    """Print the win rates of an experiment. Returns 130 after Ctrl-C, and 1 if training failed with a seed."""
    for seed, win_rate in experiment.win_rates.items():
        print(f"seed {seed}: won {win_rate:.1%} of the last evaluation")
    for seed, reason in experiment.failures.items():
        print(f"seed {seed}: failed: {reason}")
    if experiment.summary is not None:
        mean, (low, high), count = (experiment.summary[each] for each in ("interquartile_mean", "interval", "runs"))
        rough = ", rough" if count < _FEW else ""
        interval = f" [{low:.1%}, {high:.1%}] (95 %{rough})" if count > 1 else ""
        print(f"{count} seeds: median {experiment.summary['median']:.1%}, IQM {mean:.1%}{interval}")
        print(f"Curves:     {out / 'curves.png'}")
        print(f"Report:     {command('report', out)}")
    if experiment.missing:
        print(f"Continue:   {command('train', '--resume', out)}")
    return 130 if experiment.missing else int(bool(experiment.failures))


def _report(result: TrainResult, out: Path) -> int:
    how = "Interrupted after" if result.interrupted else "Trained on" if result.done else "Stopped after"
    print(f"Nothing trained: {result.nothing}." if result.nothing else f"{how} {result.steps:,} decisions.")
    print(f"Checkpoint: {result.checkpoint}")
    print(f"Evaluate:   {command('evaluate', out)}")
    print(f"Curves:     {out / 'curves.png'}, or tensorboard --logdir {shlex.quote(str(out))}")
    if not result.done or result.nothing:
        more = ", with more --steps, --max-minutes, --max-cpu-minutes or --games" if result.nothing else ""
        print(f"Continue:   {command('train', '--resume', out)}{more}")
    return 130 if result.interrupted else 0


def _add_battles(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Declare the options of scenarios. Returns those of curricula."""
    group = parser.add_argument_group("the battles")
    either = group.add_mutually_exclusive_group()
    either.add_argument(
        "--scenario",
        action="append",
        dest=f"{_CONFIG}scenario",
        metavar="NAME",
        help="scenario to train on; given again, one for each process",
    )
    names = either.add_argument(
        "--curriculum",
        nargs="+",
        dest=f"{_CONFIG}curriculum",
        metavar="NAME",
        help="scenarios to train on, one after the other",
    )
    rules = []
    for name, metavar, text in (
        ("promote", "X", f"win rate that leads to the next scenario (default: {Curriculum.promote})"),
        ("demote", "X", f"win rate that leads to the one before (default: {Curriculum.demote})"),
        ("window", "N", f"battles over which the win rate is computed (default: {Curriculum.window})"),
    ):
        rules.append(group.add_argument(f"--{name}", dest=f"{_CONFIG}curriculum.{name}", metavar=metavar, help=text))
    return [names, *rules]


def option(key: str) -> str:
    """The option of a setting, by the setting's dotted key."""
    return _SHORT.get(key, f"--{key.replace('_', '-')}")


REMOVED_OPTIONS = {
    *(option(f"ppo.{name}") for name in PPOConfig.REMOVED),
    *(option(f"network.{name}") for name in NetworkConfig.REMOVED),
    "--wandb",
}
"""Options of earlier versions, for error messages."""


def _changeable() -> str:
    """The options that may accompany --resume."""
    return ", ".join(map(option, CHANGEABLE))


def _described_configs() -> str:
    """The run configs of the package with their descriptions, in lines of at most 80 characters."""
    described = run_config_descriptions()
    width = max(map(len, described)) + 4
    return "\n".join(
        textwrap.fill(text, 80, initial_indent=f"  {name}".ljust(width), subsequent_indent=" " * width)
        for name, text in described.items()
    )


def _help(setting: Setting) -> str:
    default = f"(default: {setting.default})" if setting.default else ""
    return f"{setting.help} {default}".strip().replace("%", "%%")


def overrides_of(args: argparse.Namespace) -> dict[str, str]:
    """The settings that the command line overrides: text by dotted key."""
    overrides = {}
    for place, value in vars(args).items():
        if place.startswith(_CONFIG) and value is not None:
            key, text = place.removeprefix(_CONFIG), value
            if isinstance(value, list):  # of names, which JSON writes as TOML does
                text = value[0] if (key, len(value)) == ("scenario", 1) else json.dumps(value, ensure_ascii=False)
            overrides[key] = text
    return merge_settings(overrides, args.set)
