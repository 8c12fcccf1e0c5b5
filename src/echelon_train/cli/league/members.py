"""The commands `echelon league init`, `add` and `retire`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from echelon_env.cli.output import command
from echelon_env.config.schema import ConfigError, nearest_name
from echelon_env.config.skill import LEVELS
from echelon_env.evaluate import BASELINES
from echelon_train.cli.league.output import Result, plural
from echelon_train.league.store.members import Member
from echelon_train.league.store.periods import LeagueSettings
from echelon_train.league.store.policies import find_policy
from echelon_train.league.store.registry import League

_ALL = "all"  # five scripted players
_KIND = "past"


def run_init(args: argparse.Namespace) -> Result:
    """Create a league of scripted players, and print the next commands."""
    chosen = {"anchor": args.anchor, "tau": args.tau}
    settings = LeagueSettings(**{name: value for name, value in chosen.items() if value is not None})
    scripted = _scripted(args.scripted, settings.anchor)
    league = League.create(args.league, settings)
    for level in scripted:
        league.add_scripted(level)
    names = [member.name for member in league.members()]
    lines = [
        f"A league of {plural(len(names), 'scripted player')} in {args.league}: {', '.join(names)}.",
        f"{settings.anchor} anchors the scale with a rating of 1500.",
        "",
        "Next:",
        f"  {command('league', 'add', args.league, 'RUN')}      # add a policy",
        f"  {command('train', '--league', args.league)}      # self-play, which adds snapshots",
        f"  {command('league', 'play', args.league)}         # rate all members",
        f"  {command('league', 'standings', args.league)}",
    ]
    return Result({"anchor": settings.anchor, "tau": settings.tau, "members": names}, lines)


def _scripted(levels: list[str] | None, anchor: str) -> list[str]:
    """The scripted players besides the anchor, each once. Raises ConfigError for an unknown one."""
    named = [_ALL] if levels is None else levels
    expanded = [level for name in named for level in (LEVELS if name == _ALL else (name,))]
    for level in expanded:
        if level not in BASELINES:
            near = nearest_name(level, (*BASELINES, _ALL))
            raise ConfigError(f"--scripted: unknown player {level!r}{near}, expected {_ALL} or {', '.join(BASELINES)}")
    return [level for level in dict.fromkeys(expanded) if level != anchor]


def run_add(args: argparse.Namespace) -> Result:
    """Add a policy or a scripted player as a member."""
    member = _join(League.open(args.league), args)
    shown = ("name", "kind", "parent", "age", "weights_sha256")
    trained = "" if member.weights_sha256 is None else f", trained on {plural(member.age, 'decision')}"
    lines = [
        f"{member.name} has joined ({member.kind}{trained}).",
        f"Rate it: {command('league', 'play', args.league)}",
    ]
    return Result({name: getattr(member, name) for name in shown}, lines)


def _join(league: League, args: argparse.Namespace) -> Member:
    if args.player not in BASELINES:
        if not Path(args.player).exists() and not os.path.dirname(args.player):
            near = nearest_name(args.player, BASELINES)
            raise ConfigError(f"{args.player}: no such file or folder, and no scripted player of that name{near}")
        return league.add_checkpoint(find_policy(args.player), args.kind or _KIND, args.name, args.parent)
    for option in ("kind", "name", "parent"):
        if getattr(args, option) is not None:
            raise ConfigError(f"--{option}: goes with the policy of a run or a checkpoint, {args.player} is scripted")
    return league.add_scripted(args.player)


def run_retire(args: argparse.Namespace) -> Result:
    """Retire a member."""
    League.open(args.league).retire(args.name)
    return Result({"retired": [args.name]}, [f"{args.name} is retired."])
