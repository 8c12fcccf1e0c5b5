"""Commands and kinds of players that installed packages declare as entry points.

The trainer's commands and players are entry points, too. This package never imports the trainer by name.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from echelon_env.config.schema import ConfigError

COMMANDS = "echelon.commands"
"""Entry-point group of commands: a name, and a module as described in `echelon_env.cli.dispatch`."""

PLAYERS = "echelon.players"
"""Entry-point group of kinds of players: a name, and a function as described in `tournament.make_player`."""

CHECKPOINT = "checkpoint"
"""The kind of player that a path is."""

_OWN = "echelon-env"  # the distribution of this package


def declared(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name, sorted by name. Nothing is imported.

    Of several entry points with the same name, this package's is used, else that of the alphabetically first package.
    """
    found: dict[str, EntryPoint] = {}
    for point in _ordered(group):
        found.setdefault(point.name, point)
    return found


def ignored(group: str, taken: Collection[str] = ()) -> list[str]:
    """A line for every entry point of a group that is not used because its name is taken, or another one has it."""
    used = declared(group)
    return [
        f"{point.name!r} of {_package(point)} is ignored: "
        + ("the name is taken" if point.name in taken else f"{_package(used[point.name])} declares it in {group}")
        for point in _ordered(group)
        if point.name in taken or point != used[point.name]
    ]


def load(point: EntryPoint) -> Any:
    """Import the object of an entry point. Raises ConfigError with the package's name if the import fails."""
    try:
        return point.load()
    except Exception as error:  # an import can raise anything
        raise broken(point, f"{type(error).__name__}: {error}") from error


def is_player(name: str) -> bool:
    """Whether a name is a player of an installed package: ``KIND`` or ``KIND:ARGUMENT``, without checkpoints."""
    kind = name.partition(":")[0]
    return kind != CHECKPOINT and kind in declared(PLAYERS)


def player(name: str, seed: int, *, action_mode: str = "sampled") -> Any:
    """The `echelon_env.evaluate.Player` of a name that `is_player`. Raises ConfigError if it cannot be made."""
    kind, _, argument = name.partition(":")
    point = declared(PLAYERS)[kind]
    made = load(point)(argument, seed, action_mode=action_mode)
    if not callable(getattr(made, "policy", None)):
        raise broken(point, f"expected a Player, got {type(made).__name__}")
    return made


def checkpoint_player(path: str, seed: int, *, action_mode: str = "sampled") -> Any:
    """The `echelon_env.evaluate.Player` of a checkpoint's path, from the package that declares the kind `CHECKPOINT`.

    Raises ConfigError where no package does, and for a path without a checkpoint.
    """
    if CHECKPOINT not in declared(PLAYERS):
        raise ConfigError(f"{path}: no installed package plays checkpoints")
    return load(declared(PLAYERS)[CHECKPOINT])(path, seed, action_mode=action_mode)


def broken(point: EntryPoint, reason: str) -> ConfigError:
    """A one-line error for an entry point that cannot be used."""
    return ConfigError(f"{point.name!r} of {_package(point)} cannot be used: {' '.join(reason.split())}")


def _ordered(group: str) -> list[EntryPoint]:
    return sorted(entry_points(group=group), key=lambda point: (point.name, _package(point) != _OWN, _package(point)))


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "?"
