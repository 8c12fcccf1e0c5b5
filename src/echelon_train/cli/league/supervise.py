"""The command `echelon league run`."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from echelon_env.cli.output import command
from echelon_env.config.schema import ConfigError
from echelon_env.config.skill import LEVELS
from echelon_env.storage.atomic import new_folder
from echelon_train.checkpoints.provenance import machine_cores
from echelon_train.cli.league.arguments import PLAN_OPTIONS
from echelon_train.cli.league.output import INTERRUPTED, Result
from echelon_train.console import PrintableConsole
from echelon_train.league.errors import LeagueError
from echelon_train.league.playing.executors import Executor
from echelon_train.league.store.database import DATABASE_FILE
from echelon_train.league.store.members import read_candidate
from echelon_train.league.store.policies import find_policy
from echelon_train.league.store.registry import League
from echelon_train.runs.ancestry import load_start
from echelon_train.runs.folder import RUN_FILE, is_locked
from echelon_train.signals import stop_signals
from echelon_train.supervisor.plan import LeaguePlan, changed, read_plan, runs_folder
from echelon_train.supervisor.screen import screen
from echelon_train.supervisor.supervisor import Supervisor

_START = "start"  # name of the member that learners start from


def run_run(args: argparse.Namespace) -> Result:
    """Keep a league going. Returns 130 after Ctrl-C; everything is saved then, and the same command continues."""
    plan = _plan(args)
    for agent in plan.agents:
        plan.run_config(agent.role)  # before anything is written
    config, policy = plan.run_config(), None
    scenarios = len(config.plain_runs())
    if plan.maps < scenarios:
        raise ConfigError(f"maps: expected at least {scenarios}, one for every scenario, got {plan.maps}", "maps")
    if args.init is not None:
        policy = find_policy(args.init)
        load_start(dataclasses.replace(config, init=str(policy)))  # it must have the same network
    league = _open_or_create(args.league)
    if is_locked(runs_folder(league.path)):
        raise LeagueError(f"{league.path}: another process runs this league")
    if policy is not None:
        plan = changed(plan, {"start": _start_member(league, policy)})
    processes = args.processes or max(1, machine_cores() - len(plan.agents) * config.processes)
    supervisor = Supervisor(league, plan, Executor(processes), args.max_minutes)
    console = PrintableConsole(stderr=True)
    with screen(console) as show, stop_signals(supervisor.stop, console, every=True):
        interrupted = supervisor.run(show)
    members, champion = league.standings(), league.champion()
    name = None if champion is None else champion.name
    document = {"interrupted": interrupted, "members": len(members), "champion": name}
    lines = [
        f"{'Interrupted' if interrupted else 'Ended'}: {len(members)} members, champion {name or 'none yet'}.",
        f"Continue:   {command('league', 'run', args.league)}",
        f"Standings:  {command('league', 'standings', args.league)}",
    ]
    return Result(document, lines, INTERRUPTED if interrupted else 0)


def _plan(args: argparse.Namespace) -> LeaguePlan:
    """The plan of the league's last run, with the options that are given."""
    if (args.league / DATABASE_FILE).exists():
        League.open(args.league)  # one of another version has another plan
    changes = {name: getattr(args, name) for name in PLAN_OPTIONS}
    changes["settings"] = tuple(args.set) if args.set else None
    if args.config is not None and Path(args.config).suffix == ".toml":
        changes["config"] = str(Path(args.config).resolve())
    before = read_plan(args.league) or LeaguePlan()
    plan = changed(before, changes)
    learners = [agent.name for agent in plan.agents if (runs_folder(args.league) / agent.name / RUN_FILE).exists()]
    if learners and (plan.config, plan.settings) != (before.config, before.settings):
        raise ConfigError(
            f"--config, --set: the learners of the league keep their settings ({', '.join(learners)} exist); expected "
            "the values of its first run, or none"
        )
    return plan


def _open_or_create(path: Path) -> League:
    """The league in a folder; a new one of all scripted levels if the folder does not exist or is empty."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        return League.open(path)
    with new_folder(path) as temporary:
        league = League.create(temporary)
        for level in LEVELS:
            if level != league.settings.anchor:
                league.add_scripted(level)
    return League.open(path)


def _start_member(league: League, policy: Path) -> str:
    """The member with a policy's weights, which joins if it is none yet."""
    sha256 = read_candidate(policy).weights_sha256
    members = league.members()
    known = next((each.name for each in members if each.weights_sha256 == sha256), None)
    if known is not None:
        return known
    name = _START if _START not in {each.name for each in members} else None
    return league.add_checkpoint(policy, "main", name or _START, numbered=name is None).name
