"""Commands and kinds of players that installed packages declare as entry points.

The trainer's come in this way, too: this package never imports the trainer by name.
"""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from echelon_env.config.schema import ConfigError

COMMANDS = "echelon.commands"
"""Group of commands: a name, and a module as `echelon_env.cli.dispatch` describes it."""

PLAYERS = "echelon.players"
"""Group of kinds of players: a name, and a function as `echelon_env.cli.tournament.make_player` calls it."""

_OWN = "echelon-env"  # the distribution of this package


def declared(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name, in the order of the names; nothing is imported.

    Of several with the same name, that of this package comes first, then that of the package whose name comes first.
    The others are ignored, with a line on stderr.
    """
    found: dict[str, EntryPoint] = {}
    points = entry_points(group=group)
    for point in sorted(points, key=lambda point: (point.name, _package(point) != _OWN, _package(point))):
        first = found.setdefault(point.name, point)
        if first is not point:
            print(
                f"echelon: {point.name!r} of {_package(point)} is ignored: {_package(first)} declares it in {group}",
                file=sys.stderr,
            )
    return found


def load(point: EntryPoint) -> Any:
    """Import what an entry point names. Raises ConfigError, with the package's name, where that fails."""
    try:
        return point.load()
    except Exception as error:  # whatever a module raises when it is imported
        raise broken(point, f"{type(error).__name__}: {error}") from error


def broken(point: EntryPoint, reason: str) -> ConfigError:
    """The error for an entry point that cannot be used, in one line."""
    return ConfigError(f"{point.name!r} of {_package(point)} cannot be used: {' '.join(reason.split())}")


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "?"
