"""The option of `echelon evaluate` that writes replays: of a battle lost, one won, and the closest ones."""

from __future__ import annotations

import argparse
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from echelon_env.cli.arguments import positive
from echelon_env.cli.output import show_status
from echelon_env.cli.tournament import Field, Pairing
from echelon_env.config.schema import ConfigError
from echelon_env.engine.kernels import browser_module
from echelon_env.evaluate.matches import LOSS, WIN, Battle, Match
from echelon_env.evaluate.tables import shorten
from echelon_env.replays import ReplayError, record_battle, write_page, write_replay
from echelon_env.storage.atomic import new_folder

_LONGEST = 60  # characters of a name in that of a file
_COLOURS = ("blue", "red")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the option."""
    parser.add_argument(
        "--replays",
        nargs=2,
        metavar=("N", "DIR"),
        help="new folder for N replays of each pairing, as web pages: a lost battle, a won one, and the closest ones",
    )


def read(args: argparse.Namespace) -> tuple[int, Path | None]:
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


def write(
    folder: Path, count: int, matches: Sequence[Match], pairings: Sequence[Pairing], fields: Sequence[Field]
) -> list[str]:
    """Write replays, and pages that show them, of some battles of each match, into a new folder: all or none.

    They are the first battle lost, the first one won, and then the closest ones, `count` in all. The matches are those
    of `play_all`. Returns lines about the replays, also about those that there are not. Raises OSError, and
    `BackendError` where there is no WebAssembly.
    """
    lines = []
    with new_folder(folder) as temporary:
        labels = _labels(pairings, fields)
        for match, label, (field, pairing) in zip(matches, labels, itertools.product(fields, pairings), strict=True):
            first, second = (shorten(player.name, 24) for player in pairing)
            for kind, battle in _choose(match.battles, count):
                name = f"{kind}-{label}"
                if battle is None:
                    lines.append(f"No battle {kind} against {second} in {shorten(field.name, 18)}")
                    continue
                show_status(f"recording {name}")
                replay = record_battle(*pairing, field.config, seed=battle.seed, side=battle.side)
                write_replay(temporary / f"{name}.replay", replay)
                written = f"{name}.html"
                try:
                    write_page(temporary / written, replay)
                except ReplayError:  # it would be too large
                    written = f"{name}.replay"
                show_status("")
                lines.append(f"{folder / written}: battle {battle.number}, {first} is {_COLOURS[battle.side]}")
    return lines


def _labels(pairings: Sequence[Pairing], fields: Sequence[Field]) -> Iterator[str]:
    """For each match a part of its files' names, of its players and its scenario."""
    taken: set[str] = set()
    several = len({first.name for first, _ in pairings}) > 1
    for field, pairing in itertools.product(fields, pairings):
        names = [player.name for player in (pairing if several else pairing[1:])]
        names += [Path(field.name).stem] if len(fields) > 1 else []
        label = "-".join(map(_file_name, names))
        if label in taken:
            label = next(each for number in itertools.count(2) if (each := f"{label}-{number}") not in taken)
        taken.add(label)
        yield label


def _choose(battles: Sequence[Battle], count: int) -> Iterator[tuple[str, Battle | None]]:
    """What the battles of a match are shown for, with them: the first lost and won, or None, and the closest others."""
    chosen = [
        (kind, next((battle for battle in battles if battle.outcome == outcome), None))
        for kind, outcome in [("lost", LOSS), ("won", WIN)][:count]
    ]
    yield from chosen
    shown = [battle for _, battle in chosen if battle is not None]
    others = sorted((battle for battle in battles if battle not in shown), key=_margin)
    for number, battle in enumerate(others[: count - len(shown)], start=1):
        yield f"close-{number}", battle


def _margin(battle: Battle) -> tuple[int, float]:
    """How far from a draw a battle ended: the difference of the surviving mechs, then that of the zone scores."""
    return abs(battle.survivors[0] - battle.survivors[1]), abs(battle.scores[0] - battle.scores[1])


def _file_name(name: str) -> str:
    """A player's or a scenario's name as a part of a file's name; of a long one the end, which is the most specific."""
    return re.sub(r"[^\w.-]+", "-", name)[-_LONGEST:].strip("-.") or "player"
