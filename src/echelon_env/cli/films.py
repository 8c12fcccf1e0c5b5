"""Battles of an evaluation to look at: films of one won and one lost, replays of these and of the closest ones."""

from __future__ import annotations

import argparse
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from echelon_env.cli.arguments import positive
from echelon_env.cli.output import show_status
from echelon_env.cli.tournament import Field, Pairing
from echelon_env.config.schema import ConfigError
from echelon_env.engine.kernels import browser_module
from echelon_env.evaluate.matches import LOSS, WIN, Battle, Match
from echelon_env.evaluate.tables import shorten
from echelon_env.replays import Replay, ReplayError, export_gif, record_battle, write_page, write_replay
from echelon_env.storage.atomic import new_folder

_LONGEST = 60  # characters of a name in that of a file
_COLOURS = ("blue", "red")
_OUTCOMES = {"won": WIN, "lost": LOSS}


@dataclass(frozen=True)
class _Choice:
    """A battle to show, or the lack of one."""

    name: str  # of the file, without its end
    kind: str  # "won", "lost" or "close"
    battle: Battle | None
    pairing: Pairing
    field: Field


def add_replays(parser: argparse.ArgumentParser) -> None:
    """Declare the option ``--replays``."""
    parser.add_argument(
        "--replays",
        nargs=2,
        metavar=("N", "DIR"),
        help="new folder for N replays of each pairing, as pages for a browser: a battle that the first player lost, "
        "one that it won, and the closest ones",
    )


def read_replays(args: argparse.Namespace) -> tuple[int, Path | None]:
    """The number of replays of each pairing, and their folder.

    Raises ConfigError for a bad number, and `BackendError` where there is no WebAssembly module for pages.
    """
    if args.replays is None:
        return 0, None
    number, folder = args.replays
    try:
        count = positive(number)
    except argparse.ArgumentTypeError as error:
        raise ConfigError(f"--replays: N: {error}") from None
    browser_module()
    return count, Path(folder)


def write_films(
    folder: Path, matches: Sequence[Match], pairings: Sequence[Pairing], fields: Sequence[Field]
) -> list[str]:
    """Film the first battle won and the first one lost in each match, into a new folder: all films or none.

    The matches are those of `play_all`. Returns lines about the films, also about those that there are not. Raises
    OSError.
    """

    def write(replay: Replay, file: Path) -> list[str]:
        export_gif(replay, file.with_suffix(".gif"))
        return [".gif"]

    return _write(folder, _choices(matches, pairings, fields, count=0), "filming", write)


def write_replays(
    folder: Path, count: int, matches: Sequence[Match], pairings: Sequence[Pairing], fields: Sequence[Field]
) -> list[str]:
    """Write replays, and pages that show them, of some battles of each match, into a new folder: all or none.

    They are the first battle lost, the first one won, and then the closest ones, `count` in all. Returns lines as
    `write_films`. Raises OSError, and `BackendError` where there is no WebAssembly.
    """

    def write(replay: Replay, file: Path) -> list[str]:
        write_replay(file.with_suffix(".replay"), replay)
        try:
            write_page(file.with_suffix(".html"), replay)
        except ReplayError:  # it would be too large
            return [".replay"]
        return [".html", ".replay"]

    return _write(folder, _choices(matches, pairings, fields, count), "recording", write)


def _write(
    folder: Path, choices: Iterable[_Choice], verb: str, write: Callable[[Replay, Path], list[str]]
) -> list[str]:
    lines = []
    with new_folder(folder) as temporary:
        for choice in choices:
            first, second = choice.pairing
            if choice.battle is None:
                against = f"{shorten(second.name, 24)} in {shorten(choice.field.name, 18)}"
                lines.append(f"No battle {choice.kind} against {against}")
                continue
            show_status(f"{verb} {choice.name}")
            seed, side = choice.battle.seed, choice.battle.side
            replay = record_battle(first, second, choice.field.config, seed=seed, side=side)
            ends = write(replay, temporary / f"{choice.name}.x")
            show_status("")
            colour = _COLOURS[side]
            name = f"{folder / choice.name}{ends[0]}"
            lines.append(f"{name}: battle {choice.battle.number}, {shorten(first.name, 24)} is {colour}")
    return lines


def _choices(
    matches: Sequence[Match], pairings: Sequence[Pairing], fields: Sequence[Field], count: int
) -> Iterator[_Choice]:
    """The battles won and lost, and if `count` is not 0 as many as it says, with close ones."""
    taken: set[str] = set()
    several = len({first.name for first, _ in pairings}) > 1
    for match, (field, pairing) in zip(matches, itertools.product(fields, pairings), strict=True):
        names = [player.name for player in (pairing if several else pairing[1:])]
        names += [Path(field.name).stem] if len(fields) > 1 else []
        label = "-".join(map(_file_name, names))
        if label in taken:
            label = next(each for number in itertools.count(2) if (each := f"{label}-{number}") not in taken)
        taken.add(label)
        kinds = list(_OUTCOMES) if count == 0 else ["lost", "won"][:count]
        chosen = [next((each for each in match.battles if each.outcome == _OUTCOMES[kind]), None) for kind in kinds]
        for kind, battle in zip(kinds, chosen, strict=True):
            yield _Choice(f"{kind}-{label}", kind, battle, pairing, field)
        others = sorted((each for each in match.battles if each not in chosen), key=_margin)
        missing = count - sum(battle is not None for battle in chosen)
        for number, battle in enumerate(others[: max(0, missing)], start=1):
            yield _Choice(f"close-{number}-{label}", "close", battle, pairing, field)


def _margin(battle: Battle) -> tuple[int, float]:
    """How far from a draw a battle ended: the difference of the surviving mechs, then that of the zone scores."""
    return abs(battle.survivors[0] - battle.survivors[1]), abs(battle.scores[0] - battle.scores[1])


def _file_name(name: str) -> str:
    """A player's or a scenario's name as a part of a file's name; of a long one the end, which is the most specific."""
    return re.sub(r"[^\w.-]+", "-", name)[-_LONGEST:].strip("-.") or "player"
