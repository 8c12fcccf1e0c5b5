"""Draws the pictures of reference/scenarios.md and measures its statistics: ``python docs/pictures.py``."""

import re
from collections.abc import Mapping
from pathlib import Path

from PIL import Image

from echelon_env.cli.maps import COLUMNS, measure
from echelon_env.config.biomes import default_biomes
from echelon_env.config.map import MapConfig
from echelon_env.config.scenario import make_config, scenarios
from echelon_env.render.map_picture import map_picture
from echelon_env.render.map_sheet import contact_sheet
from echelon_env.terrain import generate

PAGE = Path(__file__).parent / "reference" / "scenarios.md"
PICTURES = Path(__file__).parent / "pictures"
SEEDS = range(100)
PIXELS = 640
"""Width of the picture of a biome."""


def save(picture: Image.Image, name: str, width: int) -> None:
    """Write a picture, small enough for a repository: scaled down, in 128 colours."""
    small = picture.resize((width, picture.height * width // picture.width), Image.Resampling.LANCZOS)
    small.quantize(128).save(PICTURES / f"{name}.png", optimize=True)


def main() -> None:
    """Draw and measure."""
    PICTURES.mkdir(exist_ok=True)
    battle = make_config("battle").map_config
    save(contact_sheet((generate(battle, seed) for seed in range(8)), 8, title="battle"), "above", 1600)
    alone = {name: make_config("battle", terrain={"biomes": (name,)}).map_config for name in default_biomes()}
    for number, (name, config) in enumerate(alone.items()):
        save(map_picture(generate(config, number), PIXELS), name, PIXELS)
    page = PAGE.read_text(encoding="utf-8")
    for name, configs in {
        "biomes": alone,
        "scenarios": {name: scenario.config.map_config for name, scenario in scenarios().items()},
    }.items():
        table = f"<!-- measured: {name} -->\n{to_markdown(configs)}\n<!-- end -->"
        page = re.sub(rf"<!-- measured: {name} -->.*?<!-- end -->", table, page, flags=re.DOTALL)
    PAGE.write_text(page, encoding="utf-8")


def to_markdown(configs: Mapping[str, MapConfig]) -> str:
    """A table of mean statistics, a row for each configuration."""
    lines = [["", *(column.name for column in COLUMNS)], ["---"] * (1 + len(COLUMNS))]
    for name, values in measure(configs, SEEDS).items():
        means = zip(COLUMNS, values.mean(axis=0), strict=True)
        lines.append([f"`{name}`", *(f"{column.factor * mean:.{column.digits}f}" for column, mean in means)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
