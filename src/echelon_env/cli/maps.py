"""Draw the maps of a scenario or of biomes, measure them, or write their recipes."""

from __future__ import annotations

import argparse
import io
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from echelon_env.cli.arguments import non_negative, positive
from echelon_env.cli.tournament import check_new_file
from echelon_env.config.map import MapConfig
from echelon_env.config.scenario import make_config
from echelon_env.config.schema import ConfigError
from echelon_env.render.map_sheet import contact_sheet
from echelon_env.storage.atomic import free_path, new_folder, write_bytes
from echelon_env.terrain import Terrain, generate
from echelon_env.terrain.biomes import BIOMES
from echelon_env.terrain.statistics import map_statistics

MAX_PICTURES = 64
"""Maximum number of maps on a sheet; pictures of more maps would be too small."""

MAX_MAPS = 100_000
"""Maximum number of maps to measure (takes an hour) or to write recipes of (takes a quarter of an hour)."""

REMOVED_OPTIONS = {"--view", "--json"}
_DEFAULT_MAPS = 12
_DEFAULT_SHEET = Path("maps.png")
_REPORT_EVERY = 500  # maps


@dataclass(frozen=True)
class _Column:
    """How a statistic is printed."""

    name: str
    width: int
    digits: int
    factor: int  # multiplies the value
    meaning: str


COLUMNS = (
    _Column("cover", 6, 0, 100, "% of columns outside the zone that block sight at 1.5 m"),
    _Column("solid", 6, 0, 100, "% of columns with a solid voxel"),
    _Column("foliage", 8, 0, 100, "% of columns with foliage"),
    _Column("glass", 6, 0, 100, "% of columns with glass"),
    _Column("harm", 5, 1, 100, "% of columns with water, lava or debris"),
    _Column("high", 5, 1, 1, "m, mean height of columns with a solid voxel"),
    _Column("rough", 6, 2, 1, "m, mean step between neighbouring columns"),
    _Column("sight", 6, 0, 1, "m, mean length of sight lines at 1.5 m"),
    _Column("reach", 6, 0, 100, "% of the map that the widest mech reaches on foot"),
    _Column("lanes", 6, 1, 1, "separate paths from a spawn area to the zone"),
    _Column("walk", 5, 0, 1, "m, path length of the widest mech to the zone"),
    _Column("skew", 5, 1, 100, "% by which the longer path exceeds the other team's"),
)
"""One column for each field of `MapStatistics`, in the same order."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add = parser.add_argument
    add("--scenario", default="battle", help="name or file of the scenario (default: %(default)s)")
    add("--maps", type=positive, metavar="N", help=f"number of maps (default: {_DEFAULT_MAPS}; 1 of each biome)")
    add(
        "--seed",
        type=non_negative,
        default=0,
        help="seed of the first map; the others have the next seeds (default: %(default)s)",
    )
    add("--biomes", nargs="*", metavar="NAME", help="maps of a single biome, for each of these (no name: all biomes)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--out",
        type=Path,
        help=f"new picture file (default: {_DEFAULT_SHEET} or the next free name)",
    )
    what.add_argument("--recipes", type=Path, metavar="DIR", help="write recipes into a new folder, no pictures")
    what.add_argument("--statistics", action="store_true", help="print statistics of the maps, no pictures")


def run(args: argparse.Namespace) -> int:
    """Draw or measure the maps, or write their recipes."""
    if args.biomes is not None and args.recipes:
        raise ConfigError("--recipes: not allowed with --biomes; a scenario's file can name the biomes")
    battle = make_config(args.scenario)
    name = Path(args.scenario).stem
    configs = {name: battle.map_config}
    if args.biomes is not None:
        biomes = args.biomes or BIOMES
        configs = {biome: make_config(battle, terrain={"biomes": (biome,)}).map_config for biome in biomes}
    is_sheet = not (args.recipes or args.statistics)
    seeds = _seeds(args, MAX_PICTURES // len(configs) if is_sheet else MAX_MAPS, is_sheet)
    if args.recipes:
        write_recipes(configs[name], seeds, args.recipes)
        print(f"{args.recipes}: recipes of {describe(name, seeds)}")
    elif args.statistics:
        print(format_statistics(name, seeds, measure(configs, seeds)))
    else:
        out = args.out or free_path(_DEFAULT_SHEET)
        if out.suffix.lower() != ".png":
            raise ConfigError(f"--out: expected a name that ends in .png, got {out}")
        draw_sheet([*configs.values()], seeds, describe(name, seeds), out)
        print(f"{out}: {describe(name, seeds)}")
    return 0


def describe(scenario: str, seeds: range) -> str:
    """A description of the maps."""
    if len(seeds) == 1:
        return f"{scenario}, map of seed {seeds[0]}"
    return f"{scenario}, {len(seeds):,} maps, seeds {seeds[0]} to {seeds[-1]}"


def draw_sheet(configs: Sequence[MapConfig], seeds: range, title: str, out: Path) -> None:
    """Write a contact sheet of maps as PNG, of each configuration in turn. Raises OSError, also if `out` exists."""
    check_new_file(out)
    png = io.BytesIO()
    terrains = itertools.chain.from_iterable(_generate_all(config, seeds) for config in configs)
    contact_sheet(terrains, len(configs) * len(seeds), title=title).save(png, "PNG")
    write_bytes(out, png.getvalue())


def write_recipes(config: MapConfig, seeds: range, out: Path) -> None:
    """Write a recipe of each map into a new folder. Files are named by seed and sort in the order of the seeds.

    Either all recipes are written or none, because a pool with missing maps is a different pool. Raises OSError, also
    if `out` is not an empty folder.
    """
    digits = len(str(seeds[-1]))
    with new_folder(out) as folder:
        for terrain in _generate_all(config, seeds):
            name = f"{terrain.seed:0{digits}}.json"
            (folder / name).write_text(terrain.recipe.to_json(), encoding="utf-8")


def measure(configs: Mapping[str, MapConfig], seeds: range) -> dict[str, NDArray[np.float64]]:
    """Statistics of each configuration's maps: (maps, statistics), in the order of the fields of `MapStatistics`."""
    return {
        name: np.array([astuple(map_statistics(terrain)) for terrain in _generate_all(config, seeds)])
        for name, config in configs.items()
    }


def format_statistics(scenario: str, seeds: range, table: Mapping[str, NDArray[np.float64]]) -> str:
    """Format a table: a row of means per biome, or mean, minimum and maximum of a scenario; then a legend."""
    rows = {subject: values.mean(axis=0) for subject, values in table.items()}
    if list(rows) == [scenario]:
        values = table[scenario]
        rows = {"mean": values.mean(axis=0), "least": values.min(axis=0), "greatest": values.max(axis=0)}
    header = "".join(f"{column.name:>{column.width}}" for column in COLUMNS)
    lines = [describe(scenario, seeds), "", f"{'':<10}{header}"]
    for subject, values in rows.items():
        cells = zip(COLUMNS, values.tolist(), strict=True)
        lines.append(
            f"{subject:<10}" + "".join(f"{column.factor * v:{column.width}.{column.digits}f}" for column, v in cells)
        )
    return "\n".join([*lines, "", *(f"{column.name:<8}{column.meaning}" for column in COLUMNS)])


def _seeds(args: argparse.Namespace, most: int, is_sheet: bool) -> range:
    """The seeds of the maps of each configuration. Raises `ConfigError` for more than `most` and for too large ones."""
    if args.maps and args.maps > most:
        raise ConfigError(f"--maps: expected at most {most:,}{' on a sheet' if is_sheet else ''}, got {args.maps:,}")
    default = 1 if is_sheet and args.biomes is not None else _DEFAULT_MAPS
    seeds = range(args.seed, args.seed + (args.maps or default))
    if seeds[-1] >= 2**64:
        raise ConfigError(f"--seed: expected seeds below 2**64, got {seeds[0]} to {seeds[-1]}")
    return seeds


def _generate_all(config: MapConfig, seeds: range) -> Iterator[Terrain]:
    """Generate the maps of the seeds one by one, and report progress on stderr."""
    for number, seed in enumerate(seeds):
        if number and number % _REPORT_EVERY == 0:
            print(f"{number:,} of {len(seeds):,} maps", file=sys.stderr)
        yield generate(config, seed)
