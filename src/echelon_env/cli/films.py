"""Films of an evaluation: a battle won and a battle lost against each opponent."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from echelon_env.cli.tournament import Field, Pairing, check_free, show_status
from echelon_env.config.schema import ConfigError
from echelon_env.evaluate.film import film_battle
from echelon_env.evaluate.matches import LOSS, WIN, Battle, Match
from echelon_env.evaluate.tables import shorten
from echelon_env.storage.atomic import new_folder

_OUTCOMES = {"won": WIN, "lost": LOSS}
_LONGEST = 60  # characters of a name in that of a file
_COLOURS = ("blue", "red")


@dataclass(frozen=True)
class _Film:
    """A battle to film, or the lack of one."""

    name: str  # of the file
    outcome: str
    battle: Battle | None  # the first with the outcome
    pairing: Pairing
    field: Field


def check_films(folder: Path | None, report: Path | None) -> None:
    """Raise OSError if films cannot be written to a folder, and ConfigError if the report is to be written into it."""
    check_free(folder)
    if folder and report and report.absolute().is_relative_to(folder.absolute()):
        raise ConfigError(f"--film: expected another folder than that of the report, which --out writes to {report}")


def write_films(
    folder: Path, matches: Sequence[Match], pairings: Sequence[Pairing], fields: Sequence[Field]
) -> list[str]:
    """Film the first battle won and the first one lost in each match, into a new folder: all films or none.

    The matches are those of `play_all`. Returns lines about the films, also about those that there are not. Raises
    OSError.
    """
    lines = []
    with new_folder(folder) as temporary:
        for film in _films(matches, pairings, fields):
            first, second = film.pairing
            against = f"{shorten(second.name, 24)} in {shorten(film.field.name, 18)}"
            if film.battle is None:
                lines.append(f"No battle {film.outcome} against {against}")
                continue
            show_status(f"filming {film.name}")
            battle = film.battle
            film_battle(temporary / film.name, first, second, film.field.config, seed=battle.seed, side=battle.side)
            show_status("")
            colour = _COLOURS[battle.side]
            lines.append(f"{folder / film.name}: battle {battle.number}, {shorten(first.name, 24)} is {colour}")
    return lines


def _films(matches: Sequence[Match], pairings: Sequence[Pairing], fields: Sequence[Field]) -> Iterator[_Film]:
    taken: set[str] = set()
    for match, (field, pairing) in zip(matches, itertools.product(fields, pairings), strict=True):
        names = [pairing[1].name] if len(fields) == 1 else [pairing[1].name, Path(field.name).stem]
        label = "-".join(map(_file_name, names))
        if label in taken:
            label = next(each for number in itertools.count(2) if (each := f"{label}-{number}") not in taken)
        taken.add(label)
        for outcome, value in _OUTCOMES.items():
            battle = next((battle for battle in match.battles if battle.outcome == value), None)
            yield _Film(f"{outcome}-{label}.gif", outcome, battle, pairing, field)


def _file_name(name: str) -> str:
    """A player's or a scenario's name as a part of a file's name; of a long one the end, which is the most specific."""
    return re.sub(r"[^\w.-]+", "-", name)[-_LONGEST:].strip("-.") or "player"
