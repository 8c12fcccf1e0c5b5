"""The command `echelon league init`."""

from __future__ import annotations

import argparse

from echelon_env.cli.output import command
from echelon_env.config.schema import ConfigError, nearest_name
from echelon_env.config.skill import LEVELS
from echelon_env.evaluate import BASELINES
from echelon_train.cli.league.output import plural, print_result
from echelon_train.league.store.periods import LeagueSettings
from echelon_train.league.store.registry import League

_ALL = "all"


def run_init(args: argparse.Namespace) -> int:
    """Create a league of scripted players, and print the next commands."""
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
        f"  {command('league', 'add', args.league, 'RUN')}      # add a policy",
        f"  {command('train', '--league', args.league)}      # self-play, which adds snapshots",
        f"  {command('league', 'play', args.league)}         # rate all members",
        f"  {command('league', 'standings', args.league)}",
    ]
    print_result(args, document, lines)
    return 0


def _scripted(levels: list[str] | None, anchor: str) -> list[str]:
    """The scripted players besides the anchor, each once. Raises ConfigError for an unknown one."""
    named = [_ALL] if levels is None else levels
    expanded = [level for name in named for level in (LEVELS if name == _ALL else (name,))]
    for level in expanded:
        if level not in BASELINES:
            near = nearest_name(level, (*BASELINES, _ALL))
            raise ConfigError(f"--scripted: unknown player {level!r}{near}, expected {_ALL} or {', '.join(BASELINES)}")
    return [level for level in dict.fromkeys(expanded) if level != anchor]
