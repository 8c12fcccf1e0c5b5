"""The command `echelon league replay`."""

from __future__ import annotations

import argparse

from echelon_env.cli.tournament import check_new_file
from echelon_env.config.schema import ConfigError
from echelon_env.evaluate.estimates import map_scores
from echelon_env.evaluate.tables import shorten
from echelon_env.replays import write_page
from echelon_env.replays.films import export_gif
from echelon_train.cli.league.output import (
    NAME,
    Result,
    describe_match,
    match_document,
    percent,
    plural,
    show_status,
    wrap,
)
from echelon_train.league.playing.replay import record, replay
from echelon_train.league.store.records import PlayedMatch
from echelon_train.league.store.registry import League

_DIFFERENT = 1  # exit code
_LISTED = 20  # matches
_UUID = 8  # digits of a uuid that are shown
_SCENARIO = 11


def run_replay(args: argparse.Namespace) -> Result:
    """Play a match again, film one of its battles, or list the last matches. Returns 1 if a battle ends differently."""
    _check(args)
    league = League.open(args.league)
    if args.match is None:
        return _list(league)
    if args.gif is not None or args.html is not None:
        return _film(league, args)
    with show_status("playing the match again"):
        again = replay(league, args.match, force=args.force)
    document = {
        **match_document(again.played),
        "same": again.same,
        "different_battles": list(again.different),
        "cautions": list(again.cautions),
    }
    battles = plural(len(again.match.battles), "battle")
    result = f"all {battles} end as recorded" if again.same else f"{len(again.different)} of {battles} end differently"
    lines = [
        *describe_match(again.played),
        f"Played again: {result}.",
        *(line for caution in again.cautions for line in wrap(f"- {caution}")),
    ]
    return Result(document, lines, 0 if again.same else _DIFFERENT)


def _check(args: argparse.Namespace) -> None:
    """Raise ConfigError for options that exclude each other, and OSError for a film that cannot be written."""
    shown = [path for path in (args.gif, args.html) if path is not None]
    if args.match is None and (args.force or shown):
        raise ConfigError("expected the MATCH to play again; without options the last matches are listed")
    if args.battle is not None and not shown:
        raise ConfigError("--battle: goes with --gif and --html")
    if len(shown) > 1:
        raise ConfigError("--html: not allowed with --gif")
    for name, path in (("gif", args.gif), ("html", args.html)):
        if path is not None:
            if path.suffix != f".{name}":
                raise ConfigError(f"--{name}: expected the name of a file that ends in .{name}, got {path}")
            check_new_file(path)


def _film(league: League, args: argparse.Namespace) -> Result:
    number, path = args.battle or 0, args.gif or args.html
    with show_status("filming"):
        recorded, cautions = record(league, args.match, number, force=args.force)
        if args.gif:
            export_gif(recorded, path)
        else:
            write_page(path, recorded)
    played = league.match(args.match)
    blue, red = recorded.players
    document = {
        **match_document(played),
        "battle": number,
        "file": str(path),
        "blue": blue,
        "red": red,
        "cautions": list(cautions),
    }
    lines = wrap(f"{path}: battle {number} of {len(played.match.battles)}, {blue} is blue and {red} is red")
    return Result(document, [*lines, *(line for caution in cautions for line in wrap(f"- {caution}"))])


def _list(league: League) -> Result:
    """Show the last matches."""
    last, recorded = league.matches(last=_LISTED), league.count_matches()
    document = {"recorded": recorded, "matches": [match_document(played) for played in last]}
    header = f"{'match':<{_UUID + 2}}{'first':<{NAME + 1}}{'second':<{NAME + 1}}{'scenario':<{_SCENARIO + 1}}"
    lines = [f"{header}{'maps':>5}{'score %':>9}", *map(_row, last)]
    lines.append(f"the last {len(last)} of {plural(recorded, 'match', 'matches')}; the score is the first's")
    return Result(document, lines)


def _row(played: PlayedMatch) -> str:
    match = played.match
    names = f"{shorten(match.first, NAME):<{NAME + 1}}{shorten(match.second, NAME):<{NAME + 1}}"
    scenario = f"{shorten(match.scenario, _SCENARIO):<{_SCENARIO + 1}}"
    score = percent(float(map_scores(match).mean()))
    return f"{played.uuid[:_UUID]:<{_UUID + 2}}{names}{scenario}{len(match.battles) // 2:>5}{score:>9}"
