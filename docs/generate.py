"""Writes the reference pages, and the tables in pages, that follow from the code: ``python docs/generate.py``."""

import re
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

from echelon_env.actions import ACTION_DIM, describe_action
from echelon_env.catalog import DEFAULT_CATALOG
from echelon_env.engine.state import EVENT_MEANINGS
from echelon_env.observations import OBSERVATION_DIM, describe_observation
from echelon_env.scenario import scenarios
from echelon_env.terrain.biomes import BIOMES

OBSERVATIONS = f"""# Observations

The flat observation of one mech: {OBSERVATION_DIM} float32 values, finite and within the ranges below. Widths are
the same for every class and scenario; rows that a suite or a roster does not fill are zeros with a zero in the mask.
Positions and velocities are in the mech's own frame (forward, left), so one policy can play either side. A stream with
several rows repeats its features row by row from the index given; `echelon_env.observations.STREAMS` has the slices and
`feature_names()` a name for every entry. The cells of `ego_map` go from behind to ahead, and within that from right to
left; those of `battle_map` by rows of the turned map. A dead mech observes zeros.

{describe_observation()}
"""

ACTIONS = f"""# Actions

The action of one mech: {ACTION_DIM} float32 values in [-1, 1]. Values outside are cut, values that are not finite
become 0 and are counted in `info["bad_actions"]`; what cannot be carried out (an empty mount, a weapon that is cooling,
a contact that is not there) does nothing.

{describe_action()}
"""


def _markdown(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(header), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)


def _transposed(entries: Iterable[object]) -> str:
    """One column per entry of a catalogue, one row per field."""
    columns = list(entries)
    rows = []
    for field in fields(columns[0]):  # type: ignore[arg-type]
        label, unit = field.name.replace("_", " "), field.metadata.get("unit")
        rows.append(
            [f"{label}, {unit}" if unit else label, *(_cell(getattr(column, field.name)) for column in columns)]
        )
    return _markdown(["", *rows[0][1:]], rows[1:])


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "-"
    if isinstance(value, (int, float)):
        return f"{value:g}" if value else "-"
    return str(value) if value is not None else "-"


TABLES = {
    "mechs": _transposed(DEFAULT_CATALOG.mech_classes),
    "weapons": _transposed(DEFAULT_CATALOG.weapons),
    "materials": _transposed(DEFAULT_CATALOG.materials),
    "scenarios": _markdown(
        ("scenario", "mechs", "map, m", "what it is"),
        (
            (
                f"`{scenario.name}`",
                f"{len(scenario.config.blue)} v {len(scenario.config.red)}",
                str(scenario.config.terrain.size),
                scenario.description,
            )
            for scenario in scenarios().values()
        ),
    ),
    "biomes": "\n\n".join(
        f"`{name}`: {biome.summary}\n\n![{name}](pictures/{name}.png)" for name, biome in BIOMES.items()
    ),
    "events": _markdown(
        ("kind", "actor", "target", "amount"), ((kind, *meanings) for kind, meanings in EVENT_MEANINGS.items())
    ),
}


def _with_tables(page: Path) -> str:
    """A page whose marked tables are those of the code."""

    def table(match: re.Match[str]) -> str:
        return f"<!-- table: {match[1]} -->\n{TABLES[match[1]]}\n<!-- end -->"

    return re.sub(r"<!-- table: (\w+) -->.*?<!-- end -->", table, page.read_text(encoding="utf-8"), flags=re.DOTALL)


GAME = _with_tables(Path(__file__).parent / "game.md")
MAPS = _with_tables(Path(__file__).parent / "maps.md")

PAGES = {"observations.md": OBSERVATIONS, "actions.md": ACTIONS, "game.md": GAME, "maps.md": MAPS}


def main() -> None:
    """Write every page beside this file."""
    for name, text in PAGES.items():
        (Path(__file__).parent / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
