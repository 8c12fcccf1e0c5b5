"""Shared parts of commands: players by name, checks of outputs, matches on the maps of scenarios with progress."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import errno
import functools
import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType

from echelon_env.cli.arguments import change_battle, non_negative, positive
from echelon_env.cli.output import show_status
from echelon_env.config import plugins
from echelon_env.config.battle import BattleConfig
from echelon_env.config.opponent import AUTO, POLICY
from echelon_env.config.plugins import CHECKPOINT
from echelon_env.config.scenario import make_config, scenarios
from echelon_env.config.schema import ConfigError, nearest_name
from echelon_env.evaluate.battle_totals import BattleTotals
from echelon_env.evaluate.matches import Match, play_match
from echelon_env.evaluate.players import BASELINES, ActionMode, Player, baseline, named_player
from echelon_env.evaluate.suite import Suite
from echelon_env.evaluate.teams import TEAM, team_of
from echelon_env.storage.atomic import check_new_folder

Pairing = tuple[Player, Player]


@dataclass(frozen=True)
class Field:
    """A field of a tournament: a scenario and the seeds of its maps."""

    name: str
    config: BattleConfig
    seeds: tuple[int, ...]


def even(text: str) -> int:
    """An even number of battles, at least 2."""
    value = positive(text)
    if value % 2:
        raise argparse.ArgumentTypeError(f"expected an even number, as every map is played from both sides, got {text}")
    return value


def seed(text: str) -> int:
    """The seed of an evaluation, an integer in [0, 2**63)."""
    value = non_negative(text)
    if value >= 2**63:
        raise argparse.ArgumentTypeError(f"expected an integer below 2**63, got {text}")
    return value


def check_new_file(path: Path) -> None:
    """Raise OSError if a new file cannot be written at `path`."""
    if path.exists():
        raise FileExistsError(errno.EEXIST, "exists already, choose another name", str(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "is not a folder, nothing can be written into it", str(path.parent))
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "is not writable, nothing can be written into it", str(path.parent))


def check_outputs(files: Mapping[str, Path | None], folders: Mapping[str, Path | None]) -> None:
    """Check the new files and folders that options write, by their names, before any battle is played.

    Raises OSError if one cannot be written, and ConfigError if two are the same or one is in the folder of another
    option.
    """
    given = {option: path for option, path in (*files.items(), *folders.items()) if path is not None}
    for option, path in given.items():
        check_new_folder(path) if option in folders else check_new_file(path)
    for (option, path), (other, folder) in itertools.permutations(given.items(), 2):
        place, around = Path(os.path.realpath(path)), Path(os.path.realpath(folder))
        if place == around or (other in folders and place.is_relative_to(around)):
            raise ConfigError(f"{other}: expected another place than that of {option}, which writes to {path}")


def check_different(names: Sequence[str]) -> None:
    """Raise ConfigError for a scenario that is named twice."""
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"--scenario: expected different names, got {name} twice")


def player_names() -> list[str]:
    """Names of players and of kinds of players on the command line. A path is also accepted as a player."""
    return [*BASELINES, *(kind for kind in plugins.declared(plugins.PLAYERS) if kind != CHECKPOINT)]


def make_player(name: str, seed: int, *, action_mode: ActionMode = "sampled") -> Player:
    """Make a player from its name, or from a folder of a run or a checkpoint.

    A kind of player is an entry point of the group `plugins.PLAYERS`: a function
    ``(argument, seed, action_mode=...)`` that returns a `Player`. ``KIND`` calls it with an empty argument,
    ``KIND:ARGUMENT`` with the argument. A path that exists, or whose folder exists, calls the kind `CHECKPOINT` with
    the path: a member of a league is not a file of that path. ``policy:PATH`` and names with a handicap are opponents,
    see `named_player`. Names with "+" between them make a team of players, see `team_of`, unless the whole is a
    package's player, an existing path or a member of a league. The seed is that of the scripted levels' choices and of
    the weights of untrained networks.

    Raises ConfigError for any other name, a folder without a loadable checkpoint, and a kind that cannot be used;
    ModuleNotFoundError for a network if the extra ``[train]`` is not installed.
    """
    if name in BASELINES:
        return baseline(name, seed, action_mode=action_mode)
    path = Path(name)
    if plugins.is_player(name) or not path.exists():
        if members := _members(name):
            return team_of(*(make_player(each, seed, action_mode=action_mode) for each in members))
        base, _, handicap = name.rpartition("@")
        if (
            plugins.is_player(name)
            or name.startswith(POLICY)
            or base in player_names()
            or (base and (handicap == AUTO or "=" in handicap))
        ):
            return named_player(name, seed, action_mode=action_mode)
        if len(path.parts) < 2 or not path.parent.is_dir():
            hint = nearest_name(name, player_names())
            raise ConfigError(f"{name}: no such file or folder, and no player of that name{hint}")
    checkpoint: Player = plugins.checkpoint_player(name, seed, action_mode=action_mode)
    return checkpoint


def _members(name: str) -> list[str]:
    """The names of a team's players; empty for a single player."""
    path = Path(name.removeprefix(POLICY))
    whole = plugins.is_player(name) or path.exists() or (path.parent.is_dir() and TEAM not in path.name)
    members = name.split(TEAM)
    return members if len(members) > 1 and all(members) and not whole else []


def make_fields(
    names: Sequence[str] | None,
    players: Sequence[Player],
    default: str,
    settings: Mapping[str, str],
    seeds: tuple[int, ...],
) -> list[Field]:
    """The scenarios of these names, else the training scenario of the players, else the default, with changed settings.

    Raises ConfigError for an unknown scenario, one that is named twice, players of different battles, and bad settings.
    """
    if names:
        check_different(names)
        configs = {name: make_config(name) for name in names}
    else:
        trained = {player.battle for player in players if player.battle is not None}
        if len(trained) > 1:
            raise ConfigError("the players were trained on different battles; choose with --scenario")
        configs = {_label(config): config for config in trained} or {default: make_config(default)}
    fields = []
    for name, config in configs.items():
        try:
            changed = change_battle(config, settings)
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}", *error.keys) from None
        fields.append(Field(_with_changes(name, changed, settings), changed, seeds))
    return fields


def _label(config: BattleConfig) -> str:
    """The name of the shipped scenario with the same battles as a training configuration, or "training battles".

    Abilities may be off, see `_with_changes`.
    """
    for name, scenario in scenarios().items():
        shipped = scenario.config
        # the first three fields change what the learner receives, not the battle
        named = {field: getattr(shipped, field) for field in ("dead_agents", "time_limit", "rewards", "abilities")}
        if dataclasses.replace(config, **named) == shipped:
            return name
    return "training battles"


def _with_changes(name: str, config: BattleConfig, settings: Mapping[str, str]) -> str:
    """The name of a scenario with the abilities that are off and the changed settings."""
    off = {ability: "false" for ability, on in dataclasses.asdict(config.abilities).items() if not on}
    given = {key.removeprefix("battle."): text for key, text in settings.items()}
    others = {key: text for key, text in given.items() if not key.startswith("abilities.")}
    changes = ", ".join(f"{key}={text}" for key, text in (off | others).items())
    return f"{name} ({changes})" if changes else name


def suite_fields(suite: Suite, names: Sequence[str] | None, battles: int | None) -> list[Field]:
    """The scenarios of a suite, or those of the `names`, with all their maps or those of the first `battles`.

    Raises SuiteError for a scenario that is not in the suite or has changed since the suite was frozen. Raises
    ConfigError for a scenario that is named twice and for more battles than the suite has.
    """
    check_different(names or [])
    fields = []
    for name in names or [scenario.name for scenario in suite.scenarios]:
        seeds = suite.scenario(name).seeds
        if battles is not None and battles > 2 * len(seeds):
            raise ConfigError(f"--battles: {suite.name} has {2 * len(seeds)} in {name!r}, got {battles}")
        fields.append(Field(name, suite.config(name), seeds if battles is None else seeds[: battles // 2]))
    return fields


def play_all(
    pairings: Sequence[Pairing],
    fields: Sequence[Field],
    num_threads: int,
    totals: Mapping[str, BattleTotals] = MappingProxyType({}),
) -> list[Match]:
    """Play every pairing on every field, field by field, and show progress on a terminal.

    The statistics of the battles on a field are added to its `totals`, if it has some, as the first player's.
    """
    matches: list[Match] = []
    with progress(sum(2 * len(field.seeds) for field in fields) * len(pairings)) as show:
        for field in fields:
            for first, second in pairings:
                before = sum(len(match.battles) for match in matches)
                title = f"{first.name} v {second.name} in {field.name}"
                match = play_match(
                    first,
                    second,
                    field.config,
                    field.seeds,
                    scenario=field.name,
                    num_threads=num_threads,
                    on_battles=functools.partial(_show_more, show, before, title),
                    totals=totals.get(field.name),
                )
                matches.append(match)
    return matches


def _show_more(show: Callable[[int, str], None], before: int, title: str, finished: int) -> None:
    show(before + finished, title)


@contextlib.contextmanager
def progress(total: int) -> Iterator[Callable[[int, str], None]]:
    """A function that shows on a terminal how many of so many battles are finished, the time left, and a title."""
    started = time.monotonic()

    def show(finished: int, title: str) -> None:
        left = (time.monotonic() - started) / finished * (total - finished)
        show_status(f"{finished:,} of {total:,} battles, {timedelta(seconds=round(left))} left: {title}")

    try:
        yield show
    finally:
        show_status("")
