"""How a league begins, and who joins it."""

from __future__ import annotations

import argparse
from pathlib import Path

from echelon_env.config.schema import ConfigError, nearest_name
from echelon_env.evaluate import BASELINES
from echelon_env.opponents.skill import LEVELS
from echelon_train.cli.league.output import deliver, plural
from echelon_train.league.store.members import Member
from echelon_train.league.store.periods import LeagueSettings
from echelon_train.league.store.registry import League

_ALL = "all"
_KIND = "past"


def run_init(args: argparse.Namespace) -> int:
    """Make a league of scripted players, and say what to do next."""
    chosen = {"anchor": args.anchor, "tau": args.tau}
    settings = LeagueSettings(**{name: value for name, value in chosen.items() if value is not None})
    scripted = _scripted(args.scripted, settings.anchor)
    league = League.create(args.league, settings)
    for level in scripted:
        league.add_scripted(level)
    names = [member.name for member in league.members()]
    document = {"league": str(args.league), "anchor": settings.anchor, "tau": settings.tau, "members": names}
    lines = [
        f"A league of {plural(len(names), 'scripted player')} in {args.league}: {', '.join(names)}.",
        f"{settings.anchor} anchors the scale with a rating of 1500.",
        "",
        "Next:",
        f"  echelon league add {args.league} RUN      # a policy joins",
        f"  echelon train --league {args.league}      # self-play, which leaves snapshots there",
        f"  echelon league play {args.league}         # everybody gets a rating",
        f"  echelon league standings {args.league}",
    ]
    deliver(args, document, lines)
    return 0


def run_add(args: argparse.Namespace) -> int:
    """Make a policy or a scripted player a member."""
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
    lines = [f"{member.name} has joined ({member.kind}{trained}).", f"Rate it: echelon league play {args.league}"]
    deliver(args, document, lines)
    return 0


def _join(league: League, args: argparse.Namespace) -> Member:
    if args.player not in BASELINES:
        if not Path(args.player).exists():
            near = nearest_name(args.player, BASELINES)
            raise ConfigError(f"{args.player}: no such file or folder, and no scripted player of that name{near}")
        return league.add_checkpoint(Path(args.player), args.kind or _KIND, args.name, args.parent)
    for option in ("kind", "name", "parent"):
        if getattr(args, option) is not None:
            raise ConfigError(f"--{option}: goes with the policy of a run or a checkpoint, {args.player} is scripted")
    return league.add_scripted(args.player)


def _scripted(levels: list[str] | None, anchor: str) -> list[str]:
    """The scripted players besides the anchor, each once. Raises ConfigError for an unknown one."""
    named = [_ALL] if levels is None else levels
    expanded = [level for name in named for level in (LEVELS if name == _ALL else (name,))]
    for level in expanded:
        if level not in BASELINES:
            near = nearest_name(level, (*BASELINES, _ALL))
            raise ConfigError(f"--scripted: unknown player {level!r}{near}, expected {_ALL} or {', '.join(BASELINES)}")
    return [level for level in dict.fromkeys(expanded) if level != anchor]
