"""Battles as text with ANSI colours."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.catalog import AIR, DIRT, MATERIALS
from echelon_env.engine.state import State
from echelon_env.render.frame import check_battle
from echelon_env.render.header import outcome_text
from echelon_env.render.palette import STYLE_BY_MATERIAL, TEAMS, class_letters

ASPECT = 2  # characters are about twice as high as wide
MIN_WIDTH = 40
ARROWS = "→↗↑↖←↙↓↘"
RESET = "\x1b[0m"
ZONE_SYMBOL, ZONE_COLOUR, EMPTY_ZONE = ":", 250, 240
SMOKE_SYMBOL, SMOKE_COLOUR, SMOKE_GROUND = "░", 252, 244
FALLEN = "_"
WHITE, FADED = 231, 245
"""Indices into the 256 terminal colours."""

Cell = tuple[str, int, int | None]
"""Symbol, foreground and background colour of one character."""


def render_ansi(config: BattleConfig, state: State, battle: int = 0, width: int = 80) -> str:
    """Render battle number `battle` as lines of at most `width` visible characters: scores, the map, a legend.

    North is on top. A living mech is the letter of its class on its team's colour and an arrow in the direction that
    it faces. A lowercase letter marks a shut-down mech, `_` instead of the arrow a fallen mech, and `x` a death. Smoke
    has a light background. Raises ValueError if `width` is less than 40, and IndexError if there is no such battle.
    """
    if width < MIN_WIDTH:
        raise ValueError(f"width: expected at least {MIN_WIDTH}, got {width}")
    check_battle(state, battle)
    cells = _terrain_cells(config, state, battle, width)
    _put_mechs(cells, config, state, battle)
    lines = [*_score_lines(config, state, battle, width), *map(_coloured, cells), *_legend(config, width)]
    return "\n".join(lines)


def _coloured(cells: Iterable[Cell]) -> str:
    """Join the characters, with colour codes where the colour changes."""
    parts: list[str] = []
    last: tuple[int, int | None] | None = None
    for symbol, foreground, background in cells:
        if (foreground, background) != last:
            parts.append(f"\x1b[0;38;5;{foreground}" + ("m" if background is None else f";48;5;{background}m"))
            last = foreground, background
        parts.append(symbol)
    return "".join(parts) + RESET


def _text(text: str, foreground: int = WHITE) -> list[Cell]:
    return [(symbol, foreground, None) for symbol in text]


def _terrain_cells(config: BattleConfig, state: State, battle: int, width: int) -> list[list[Cell]]:
    """Rows of characters from north to south. Each shows the highest voxel of its area, so thin walls are visible."""
    size, row = config.terrain.size, state.battles[battle]
    rows = width // ASPECT
    y_edges, x_edges = (np.arange(count) * size // count for count in (rows, width))
    highest = np.maximum.reduceat(np.maximum.reduceat(_surface(state.voxels[battle]), y_edges, 0), x_edges, 1)
    zone_colour = _zone_colour(state.teams[battle])
    smoky = _smoky(config, state, battle, rows, width)
    cells: list[list[Cell]] = []
    for r in reversed(range(rows)):
        line: list[Cell] = []
        for c in range(width):
            material = int(highest[r, c]) % len(MATERIALS)
            style = STYLE_BY_MATERIAL[material]
            x, y = (c + 0.5) * size / width, (r + 0.5) * size / rows
            inside = math.hypot(x - row["zone_x"], y - row["zone_y"]) <= row["zone_radius"]
            symbol, colour = style.symbol, style.ansi
            if inside and material in (AIR, DIRT):
                symbol, colour = ZONE_SYMBOL, ZONE_COLOUR
            background = zone_colour if inside else None
            if smoky[r, c]:
                background = SMOKE_GROUND
                if material in (AIR, DIRT):
                    symbol, colour = SMOKE_SYMBOL, SMOKE_COLOUR
            line.append((symbol, colour, background))
        cells.append(line)
    return cells


def _smoky(config: BattleConfig, state: State, battle: int, rows: int, columns: int) -> NDArray[np.bool_]:
    """Mask (rows, columns), from south to north, of the characters whose centre is in a cloud."""
    y, x = ((np.arange(count) + 0.5) * config.terrain.size / count for count in (rows, columns))
    smoky = np.zeros((rows, columns), np.bool_)
    for cloud in state.clouds[battle, : state.battles[battle]["num_clouds"]]:
        smoky |= np.hypot(y[:, None] - cloud["y"], x[None, :] - cloud["x"]) <= cloud["radius"]
    return smoky


def _surface(voxels: NDArray[np.uint8]) -> NDArray[np.int64]:
    """(Y, X): height of the highest voxel that is not air, times the number of materials, plus its material."""
    surface = np.zeros(voxels.shape[1:], np.int64)
    for z, layer in enumerate(voxels):
        filled = layer != AIR
        surface[filled] = z * len(MATERIALS) + layer[filled]
    return surface


def _zone_colour(teams: Any) -> int:
    inside = [style.dark_ansi for style, team in zip(TEAMS, teams, strict=True) if team["inside"] > 0]
    return inside[0] if len(inside) == 1 else EMPTY_ZONE


def _put_mechs(cells: list[list[Cell]], config: BattleConfig, state: State, battle: int) -> None:
    """Draw deaths, then arrows, then letters, so that only letters can hide a letter."""
    letters = class_letters(config.catalog)
    placed = []
    for mech in state.mechs[battle]:
        c = min(int(mech["x"] * len(cells[0]) / config.terrain.size), len(cells[0]) - 1)
        r = len(cells) - 1 - min(int(mech["y"] * len(cells) / config.terrain.size), len(cells) - 1)
        placed.append((mech, r, c))
        if not mech["alive"]:
            cells[r][c] = ("x", TEAMS[mech["team"]].ansi, None)
    living = [entry for entry in placed if entry[0]["alive"]]
    for mech, r, c in living:
        if c + 1 < len(cells[r]):
            arrow = FALLEN if mech["fallen"] else ARROWS[round(mech["yaw"] / (math.pi / 4)) % len(ARROWS)]
            cells[r][c + 1] = (arrow, WHITE, cells[r][c + 1][2])
    for mech, r, c in living:
        letter = letters[mech["mech_class"]]
        cells[r][c] = (letter.lower() if mech["shutdown"] else letter, WHITE, TEAMS[mech["team"]].ansi)


def _score_lines(config: BattleConfig, state: State, battle: int, width: int) -> list[str]:
    """Lines with the time and the outcome, then for each team its score as a bar and its number of mechs."""
    row = state.battles[battle]
    seconds, limit = (count * config.decision_seconds for count in (row["step_count"], config.max_steps))
    outcome = f"  {outcome_text(state, battle)}" if row["over"] else ""
    lines = [_coloured(_text(f"time {seconds:.1f} / {limit:g} s{outcome}"[:width]))]
    for style, team, roster in zip(TEAMS, state.teams[battle], config.rosters, strict=True):
        name = f"{style.name:<5}"
        numbers = (
            f" {team['score']:5.1f} / {config.zone.score_to_win:g} s  {team['mechs_alive']:2d}/{len(roster)} mechs"
        )
        length = max(0, width - len(name) - len(numbers))
        filled = round(length * min(1.0, team["score"] / config.zone.score_to_win))
        bar = [*_text("█" * filled, style.ansi), *_text("-" * (length - filled), FADED)]
        lines.append(_coloured([*_text(name), *bar, *_text(numbers)][:width]))
    return lines


def _legend(config: BattleConfig, width: int) -> list[str]:
    """The legend of the symbols, in lines of at most `width` characters."""
    entries = [
        _text(f"{letter} {mech_class.name}")
        for letter, mech_class in zip(class_letters(config.catalog), config.catalog.mech_classes, strict=True)
    ]
    entries += [_text("small letter: shut down"), _text(f"{FALLEN} fallen"), _text("x death")]
    entries += [
        _text(f"{ZONE_SYMBOL} zone", ZONE_COLOUR),
        [(SMOKE_SYMBOL, SMOKE_COLOUR, SMOKE_GROUND), *_text(" smoke")],
    ]
    entries += [
        _text(f"{style.symbol} {material.name}", style.ansi)
        for material, style in zip(MATERIALS, STYLE_BY_MATERIAL, strict=True)
        if style.symbol.strip()
    ]
    lines: list[list[Cell]] = [[]]
    for entry in entries:
        if lines[-1] and len(lines[-1]) + 2 + len(entry) > width:
            lines.append([])
        lines[-1] += [*_text("  "), *entry] if lines[-1] else entry
    return [_coloured(line) for line in lines]
