"""Options of the commands of `echelon league`. A function `run_NAME` in a module of this package runs each command."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from echelon_env.cli.arguments import CommandParser, non_negative, positive, positive_number
from echelon_train.cli.report import add_report_options
from echelon_train.supervisor.plan import LeaguePlan

_EPILOG = """\
examples:
  echelon league run leagues/mine --init runs/imitate-skirmish
  echelon league init leagues/mine
  echelon league add leagues/mine runs/skirmish
  echelon league play leagues/mine
  echelon league standings leagues/mine
"""

_RUN_EPILOG = """\
A league that does not exist is created, with all scripted levels. Options that
are given are kept for the next run of the league. Ctrl-C saves and ends
everything; the same command continues, also after a crash.

Cores: every learner is a process with one thread, and as many matches are
played at a time as there are further cores (--processes).
"""

PLAN_OPTIONS = {each.name: each for each in dataclasses.fields(LeaguePlan) if each.name not in ("settings", "start")}
"""Fields of a league's plan that are options of ``run`` of their own."""

_RARE_PLAN_OPTIONS = ("maps", "until_rd", "k", "active")
_USUAL_BATTLE = "that of the last match, else what the newest policy was trained on, or skirmish"


def add_arguments(parser: CommandParser) -> None:
    """Declare the commands of a league."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    commands = _Commands(parser)
    _add_run(commands)
    _add_setup(commands)
    _add_reports(commands)
    _add_playing(commands)
    _add_champions(commands)
    _add_upkeep(commands)


class _Commands:
    """The commands below ``echelon league``."""

    def __init__(self, parser: CommandParser) -> None:
        self._subparsers = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(self, name: str, summary: str, *, module: str = "", league: bool = True) -> CommandParser:
        """Declare a command, with the league's folder as its first argument unless `league` is false.

        The summary is a sentence. `run_NAME`, of the module NAME or `module`, runs the command.
        """
        command = self._subparsers.add_parser(name, help=summary, description=summary)
        if league:
            command.add_argument("league", type=Path, metavar="LEAGUE", help="folder of the league")
        command.add_argument("--json", action="store_true", help="print JSON")
        command.set_defaults(module=module or name, function=f"run_{name}", parser=command)
        return command


def _add_run(commands: _Commands) -> None:
    summary = "Keep a league going: learners, matches, promotions, retirement."
    run = commands.add("run", summary, module="supervise")  # a module `run` would hide the function of the package
    run.formatter_class = argparse.RawDescriptionHelpFormatter
    run.epilog = _RUN_EPILOG
    rare = run.add_full_help(_RUN_EPILOG)
    add = run.add_argument
    add("--init", metavar="POLICY", help="run, checkpoint or LEAGUE/MEMBER that new learners start from; it joins")
    for field in PLAN_OPTIONS.values():
        default = f"{field.default:,}" if isinstance(field.default, int) else f"{field.default}"
        numeric = not isinstance(field.default, str)
        option = add(
            f"--{field.name.replace('_', '-')}",
            type=type(field.default),
            metavar="N" if numeric else "CONFIG",
            help=f"{field.metadata['help']} (default: {default})",
        )
        if field.name in _RARE_PLAN_OPTIONS:
            rare.append(option)
    add("--set", action="append", metavar="KEY=VALUE", help="any setting of the learners, as in echelon train")
    add(
        "--max-minutes",
        type=positive_number,
        metavar="X",
        help="time after which all is saved and ended (default: none)",
    )
    add("--processes", type=positive, metavar="N", help="matches at a time (default: cores less learners, at least 1)")


def _add_setup(commands: _Commands) -> None:
    add = commands.add("init", "Create a league.", module="members", league=False).add_argument
    add("league", type=Path, metavar="LEAGUE", help="new folder for it")
    add("--anchor", metavar="LEVEL", help="scripted player that keeps its rating of 1500 (default: novice)")
    add("--tau", type=positive_number, metavar="X", help="tau of Glicko-2: how fast volatilities change (default: 0.5)")
    add(
        "--scripted",
        nargs="*",
        metavar="LEVEL",
        help="first members besides the anchor: scripted players, or all for the five levels (default: all)",
    )
    add = commands.add("add", "Add a policy or a scripted player as a member.", module="members").add_argument
    add("player", metavar="PLAYER", help="run or checkpoint folder, LEAGUE/MEMBER, or scripted player")
    add("--kind", help="main or exploiter if it is still training (default: past)")
    add("--name", help="its name in the league (default: its kind and a number)")
    add("--parent", metavar="NAME", help="member that it was trained from; of an exploiter: its victim")


def _add_reports(commands: _Commands) -> None:
    for name, summary in (
        ("standings", "Show the members by rating."),
        ("matrix", "Show the mean score of every pair, and whether they form cycles."),
        ("history", "Show the ratings after each rating period."),
    ):
        command = commands.add(name, summary, module="ratings")
        command.add_argument("--all", action="store_true", help="retired members as well")
    report = commands.add("report", "Write all results as one HTML file.")
    report.add_argument("--all", action="store_true", help="retired members as well")
    add_report_options(report, "report.html in the league's folder", ", one of each pairing", 6)


def _add_playing(commands: _Commands) -> None:
    play = commands.add("play", "Play matches and rate the members.")
    add = play.add_argument
    add(
        "players",
        nargs="*",
        metavar="PLAYER",
        help="two members, for one match (default: matches of all members until their ratings are known well enough)",
    )
    _add_scenario(play)
    add("--maps", type=positive, default=10, metavar="N", help="maps of a match, each from both sides (default: 10)")
    add("--until-rd", type=positive_number, metavar="X", help="target rating deviation, points (default: 75)")
    add("--max-matches", type=positive, metavar="N", help="largest number of matches in a rating run (default: 1000)")
    add("--processes", type=positive, default=1, metavar="N", help="processes that play (default: %(default)s)")
    add = commands.add("replay", "Play a recorded match again, or film one of its battles.").add_argument
    add("match", nargs="?", metavar="MATCH", help="uuid of a match or its prefix (default: list the last matches)")
    add("--force", action="store_true", help="play the match even if versions have changed since")
    add("--gif", type=Path, metavar="FILE", help="film one battle into a new file instead")
    add("--html", type=Path, metavar="FILE", help="write a page that replays one battle in a browser instead")
    add("--battle", type=non_negative, metavar="N", help="number of the battle to film, from 0 (default: 0)")


def _add_champions(commands: _Commands) -> None:
    promote = commands.add("promote", "Promote a member to champion after a match against the current one.")
    promote.add_argument("name", metavar="NAME", help="name of the member")
    promote.add_argument(
        "--k",
        type=float,
        default=1.0,
        metavar="X",
        help="deviations between a rating and its conservative score (default: 1)",
    )
    _add_scenario(promote)
    promote.add_argument(
        "--maps", type=positive, default=50, metavar="N", help="maps of the match with the champion (default: 50)"
    )
    retire = commands.add("retire", "Retire a member; its matches still count.", module="members")
    retire.add_argument("name", metavar="NAME", help="name of the member")


def _add_scenario(command: argparse.ArgumentParser, default: str = _USUAL_BATTLE) -> None:
    command.add_argument("--scenario", metavar="NAME", help=f"battle (default: {default})")


def _add_upkeep(commands: _Commands) -> None:
    commands.add("rebuild", "Compute all ratings again from the matches.", module="upkeep")
    commands.add("fsck", "Check the league for damage.", module="upkeep")
