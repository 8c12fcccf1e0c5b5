"""The entry point of `echelon`: finds the command, runs it, and turns expected errors into one line.

A command is a module with ``add_arguments(parser)``, ``run(args) -> exit code``, a docstring whose first line is its
help, and optionally ``EXPECTED_ERRORS``, the exceptions that are the user's to mend. One that has commands of its own
leaves the parser of the one that was chosen in ``args.parser``.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import re
import sys
from collections.abc import Sequence
from importlib.metadata import version

from echelon_env.config.schema import ConfigError, nearest_name

COMMANDS = {
    "bench": "echelon_env.cli.bench",
    "maps": "echelon_env.cli.maps",
    "evaluate": "echelon_env.cli.evaluate",
    "ladder": "echelon_env.cli.ladder",
    "train": "echelon_train.cli.train",
    "sweep": "echelon_train.cli.sweep",
    "demo": "echelon_train.cli.demo",
    "league": "echelon_train.cli.league",
}
"""Commands and their modules, imported by name: this package never depends on the trainer."""

TRAIN_PACKAGES = ("torch", "stable_baselines3", "sb3_contrib", "safetensors", "rich", "tensorboard", "matplotlib")
"""Modules that the extra ``[train]`` brings."""

ERROR, INTERRUPTED = 2, 130
"""Exit codes: a request that cannot be met, and Ctrl-C."""


class _Parser(argparse.ArgumentParser):
    """Reports a bad command line in one line, with the nearest command."""

    def error(self, message: str) -> None:  # type: ignore[override]
        """Leave with the message."""
        self.exit(ERROR, f"{self.prog}: {message} (see '{self.prog} --help')\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (the process's own by default) and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        return _fail(f"unknown command {arguments[0]!r}{nearest_name(arguments[0], COMMANDS)}")
    parser = _Parser(prog="echelon", description="Team-versus-team mech battles for reinforcement learning.")
    parser.add_argument("--version", action="version", version=f"echelon-env {version('echelon-env')}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module_name in COMMANDS.items():
        module = importlib.import_module(module_name)
        summary = (module.__doc__ or "").splitlines()[0]
        command = subparsers.add_parser(name, help=summary, description=summary)
        module.add_arguments(command)
    args, unknown = parser.parse_known_args(arguments)
    if unknown:
        return _refuse(unknown[0], getattr(args, "parser", subparsers.choices[args.command]))
    module = importlib.import_module(COMMANDS[args.command])
    try:
        code: int = module.run(args)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is flushed at the end
        return ERROR
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in TRAIN_PACKAGES:
            raise
        return _fail(f"'{args.command}' needs {error.name}: pip install \"echelon-env[train]\"")
    except MemoryError as error:
        return _fail(f"not enough memory: {error}")
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (ConfigError, *getattr(module, "EXPECTED_ERRORS", ())) as error:
        return _fail(str(error))
    return code


def _refuse(argument: str, command: argparse.ArgumentParser) -> int:
    """Report an argument that a command does not take, with the nearest option."""
    name = argument.partition("=")[0]
    options = re.findall(r"--\w[\w.-]*\w", command.format_help())
    close = difflib.get_close_matches(name, options, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return _fail(f"'{command.prog.partition(' ')[2]}' takes no {name!r}{hint} (see '{command.prog} --help')")


def _fail(message: str, code: int = ERROR) -> int:
    print(f"echelon: {message}", file=sys.stderr)
    return code
