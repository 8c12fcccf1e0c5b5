"""The entry point of `echelon`: it finds the command, runs it, and reports expected errors in one line.

Commands are entry points of the group `plugins.COMMANDS`. A command is a module with these members:

- ``add_arguments(parser)`` declares the options.
- ``run(args)`` runs the command and returns the exit code.
- The first line of the docstring is the summary in the help.
- ``EXPECTED_ERRORS`` (optional) lists the exceptions that the user can fix.
- ``REMOVED_OPTIONS`` (optional) has options that earlier versions had.

A command with subcommands sets ``args.parser`` to the parser of the chosen subcommand.
"""

from __future__ import annotations

import argparse
import difflib
import io
import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from importlib.metadata import EntryPoint, version
from typing import Any

from echelon_env.cli.arguments import ERROR, CommandParser
from echelon_env.cli.output import printable_output
from echelon_env.config import plugins
from echelon_env.config.schema import ConfigError, nearest_name
from echelon_env.engine.kernels import BackendError
from echelon_env.evaluate.players import BASELINES
from echelon_env.storage.text import one_line

TRAIN_PACKAGES = ("torch", "stable_baselines3", "sb3_contrib", "rich", "tensorboard", "matplotlib")
"""Modules that the extra ``[train]`` installs."""

INTERRUPTED = 130
"""Exit code for Ctrl-C; `ERROR` is that for an invalid request."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (default: ``sys.argv``) and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # of terminals whose encoding lacks a character
    commands = plugins.declared(plugins.COMMANDS)
    for line in [*plugins.ignored(plugins.COMMANDS), *plugins.ignored(plugins.PLAYERS, taken=BASELINES)]:
        print(f"echelon: {line}", file=sys.stderr)
    name = arguments[0] if arguments else ""
    if name in commands:  # imports the module of this command only
        return _run(commands[name], arguments[1:])
    if name and not name.startswith("-"):
        return fail(f"unknown command {name!r}{nearest_name(name, commands)}")
    parser = _overview(commands)
    parser.parse_args(arguments)  # --help and --version exit here
    parser.error("expected a command first")
    return ERROR


def _overview(commands: Mapping[str, EntryPoint]) -> CommandParser:
    """The parser of a command line without a command. Its help lists all commands, broken ones with the error."""
    parser = CommandParser(prog="echelon", description="Team-versus-team mech battles for reinforcement learning.")
    parser.add_argument("--version", action="version", version=f"echelon-env {version('echelon-env')}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, point in commands.items():
        try:
            summary = _summary(_load(point))
        except ConfigError as error:
            summary = str(error)
        subparsers.add_parser(name, help=summary.removesuffix(".").replace("%", "%%"))
    return parser


def _run(point: EntryPoint, arguments: Sequence[str]) -> int:
    """Run a command, and report expected errors in one line."""
    module = None
    try:
        module = _load(point)
        parser = CommandParser(prog=f"echelon {point.name}", description=_summary(module))
        module.add_arguments(parser)
        args, unknown = parser.parse_known_args(arguments)
        if unknown:
            return _refuse(unknown[0], getattr(args, "parser", parser), getattr(module, "REMOVED_OPTIONS", ()))
        with printable_output():
            code: int = module.run(args)
            sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes stdout again at exit
        return ERROR
    except KeyboardInterrupt:
        return fail("interrupted", INTERRUPTED)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in TRAIN_PACKAGES:
            raise
        return fail(f"'{point.name}' needs {error.name}: pip install \"echelon-env[train]\"")
    except MemoryError as error:
        return fail(f"not enough memory: {error}")
    except OSError as error:
        return fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (BackendError, ConfigError, *getattr(module, "EXPECTED_ERRORS", ())) as error:
        return fail(str(error))
    return code


def _load(point: EntryPoint) -> Any:
    """Import the module of a command. Raises ConfigError if it cannot be used."""
    module = plugins.load(point)
    for name in ("add_arguments", "run"):
        if not callable(getattr(module, name, None)):
            raise plugins.broken(point, f"{point.value} has no function {name}")
    return module


def _summary(module: Any) -> str:
    return next(iter((module.__doc__ or "").splitlines()), "")


def _refuse(argument: str, command: argparse.ArgumentParser, removed: Collection[str]) -> int:
    """Report an unknown argument, with the nearest option unless there was one of its name."""
    name = argument.partition("=")[0]
    options = re.findall(r"--\w[\w.-]*\w", command.format_help())
    close = difflib.get_close_matches(name, options, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    if "." in name and "." not in "".join(close) and "--set" in options:
        hint = f"; did you mean --set {name.removeprefix('--')}=VALUE?"
    if name in removed:
        hint = ": it no longer exists"
    return fail(f"'{command.prog.partition(' ')[2]}' takes no {name!r}{hint} (see '{command.prog} --help')")


def fail(message: str, code: int = ERROR) -> int:
    """Print why a command failed, in one line, and return the exit code."""
    print(f"echelon: {one_line(message)}", file=sys.stderr)
    return code
