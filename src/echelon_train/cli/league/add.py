"""The command `echelon league add`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from echelon_env.cli.output import command
from echelon_env.config.schema import ConfigError, nearest_name
from echelon_env.evaluate import BASELINES
from echelon_train.cli.league.output import plural, print_result
from echelon_train.league.store.members import Member
from echelon_train.league.store.policies import find_policy
from echelon_train.league.store.registry import League

_KIND = "past"


def run_add(args: argparse.Namespace) -> int:
    """Add a policy or a scripted player as a member."""
    league = League.open(args.league)
    member = _join(league, args)
    document = {
        "league": str(args.league),
        "name": member.name,
        "kind": member.kind,
        "parent": member.parent,
        "age": member.age,
        "weights_sha256": member.weights_sha256,
    }
    trained = "" if member.weights_sha256 is None else f", trained on {plural(member.age, 'decision')}"
    lines = [
        f"{member.name} has joined ({member.kind}{trained}).",
        f"Rate it: {command('league', 'play', args.league)}",
    ]
    print_result(args, document, lines)
    return 0


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
