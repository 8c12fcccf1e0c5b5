"""Commands and kinds of players that installed packages declare as entry points.

The trainer's come in this way, too: this package never imports the trainer by name.
"""

from __future__ import annotations

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

    Of several with the same name, this package's counts, else that of the package whose name comes first.
    """
    found: dict[str, EntryPoint] = {}
    for point in _ordered(group):
        found.setdefault(point.name, point)
    return found


def ignored(group: str) -> list[str]:
    """A line for every entry point of a group that does not count, because another has its name."""
    counting = declared(group)
    return [
        f"{point.name!r} of {_package(point)} is ignored: {_package(counting[point.name])} declares it in {group}"
        for point in _ordered(group)
        if point != counting[point.name]
    ]


def load(point: EntryPoint) -> Any:
    """Import what an entry point names. Raises ConfigError, with the package's name, where that fails."""
    try:
        return point.load()
    except Exception as error:  # whatever a module raises when it is imported
        raise broken(point, f"{type(error).__name__}: {error}") from error


def broken(point: EntryPoint, reason: str) -> ConfigError:
    """The error for an entry point that cannot be used, in one line."""
    return ConfigError(f"{point.name!r} of {_package(point)} cannot be used: {' '.join(reason.split())}")


def _ordered(group: str) -> list[EntryPoint]:
    return sorted(entry_points(group=group), key=lambda point: (point.name, _package(point) != _OWN, _package(point)))


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "?"
