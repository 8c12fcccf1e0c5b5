"""Colours and symbols of teams, mech classes and materials, shared by pictures and text."""

from __future__ import annotations

from dataclasses import dataclass

from echelon_env.config.battle import BattleConfig
from echelon_env.config.catalog import MATERIALS, Catalog

RGB = tuple[int, int, int]


TEXTURE_METRES = 2
"""Edge length in metres of the square that a texture covers."""

TEXTURE_CELLS = 8
"""Rows and columns of a texture. Symbols: `.` plain colour, `+` lighter, `-` darker, `*` accent."""

PLAIN_TEXTURE = ("." * TEXTURE_CELLS,) * TEXTURE_CELLS


@dataclass(frozen=True, kw_only=True)
class TeamStyle:
    """Colours of a team."""

    name: str
    colour: RGB
    ansi: int  # index into the 256 terminal colours
    dark_ansi: int  # background of a zone that the team holds


@dataclass(frozen=True, kw_only=True)
class MaterialStyle:
    """Colours, symbol and texture of a material."""

    colour: RGB
    opacity: float  # 0..1, of one voxel seen from above
    symbol: str  # one character wide
    ansi: int  # foreground colour, index into the 256 terminal colours
    texture: tuple[str, ...] = PLAIN_TEXTURE  # drawn where the material is on top
    accent: RGB = (0, 0, 0)  # accent colour of the texture


# blue and vermilion are distinguishable by lightness, and with all common kinds of colour blindness
TEAMS = (
    TeamStyle(name="blue", colour=(38, 120, 235), ansi=27, dark_ansi=18),
    TeamStyle(name="red", colour=(232, 84, 32), ansi=166, dark_ansi=52),
)
"""Styles by team index."""

RIPPLES = (
    "........",
    ".**.....",
    "*..*....",
    "........",
    "........",
    ".....**.",
    "....*..*",
    "........",
)
VEINS = (
    "**..--.*",
    ".***..*.",
    "...*.**-",
    "--.**..-",
    "-.*..*..",
    ".**...**",
    "*..--..*",
    "*.---..*",
)
RUBBLE = (
    "-.+..-..",
    "..-.+..+",
    ".+...*.-",
    "-..+-...",
    "..-..+..",
    "+...-..-",
    ".-*.+...",
    "...-..+.",
)
SCRAP = ("*...*...", ".*...*..", "..*...*.", "...*...*") * 2

MATERIAL_STYLES = {
    "air": MaterialStyle(colour=(0, 0, 0), opacity=0.0, symbol=" ", ansi=238),
    "dirt": MaterialStyle(colour=(104, 91, 72), opacity=1.0, symbol=".", ansi=94),
    "concrete": MaterialStyle(colour=(150, 148, 143), opacity=1.0, symbol="#", ansi=248),
    "reinforced": MaterialStyle(colour=(106, 112, 130), opacity=1.0, symbol="@", ansi=103),
    "glass": MaterialStyle(colour=(150, 214, 240), opacity=0.3, symbol="=", ansi=117),
    "foliage": MaterialStyle(colour=(58, 116, 52), opacity=0.45, symbol='"', ansi=71),
    "water": MaterialStyle(
        colour=(40, 96, 138), opacity=0.9, symbol="~", ansi=32, texture=RIPPLES, accent=(104, 164, 196)
    ),
    "lava": MaterialStyle(
        colour=(178, 44, 14), opacity=1.0, symbol="%", ansi=202, texture=VEINS, accent=(255, 196, 64)
    ),
    "debris": MaterialStyle(
        colour=(84, 74, 68), opacity=1.0, symbol=",", ansi=138, texture=RUBBLE, accent=(226, 132, 60)
    ),
    "wreck": MaterialStyle(
        colour=(52, 44, 46), opacity=1.0, symbol="&", ansi=137, texture=SCRAP, accent=(158, 104, 66)
    ),
}
"""Styles by material name."""

STYLE_BY_MATERIAL = tuple(MATERIAL_STYLES[material.name] for material in MATERIALS)
"""Styles by material index."""

BEDROCK: RGB = (72, 70, 66)


def class_letters(catalog: Catalog) -> tuple[str, ...]:
    """A distinct capital letter for each mech class, by class index: the first free letter of its name, or a digit."""
    letters: list[str] = []
    for index, mech_class in enumerate(catalog.mech_classes):
        candidates = [*mech_class.name.upper(), *"0123456789"]
        free = [symbol for symbol in candidates if symbol.isalnum() and symbol not in letters]
        letters.append(free[0] if free else str(index % 10))
    return tuple(letters)


def mech_names(config: BattleConfig) -> tuple[str, ...]:
    """The name of each mech in pictures and pages, by row: "Red M6" is the medium mech ``red_6``."""
    letters = dict(zip((each.name for each in config.catalog.mech_classes), class_letters(config.catalog), strict=True))
    teams = ("Blue", config.blue), ("Red", config.red)
    return tuple(f"{team} {letters[name]}{number}" for team, roster in teams for number, name in enumerate(roster))
