"""Draws projectiles in flight on a map."""

from __future__ import annotations

import math
from typing import Any

from echelon_env.config.battle import BattleConfig
from echelon_env.config.catalog import Weapon
from echelon_env.engine.state import State
from echelon_env.render.canvas import DARK, LIGHT, Canvas
from echelon_env.render.palette import RGB, TEAMS

TRACER: RGB = (255, 240, 150)
SLUG: RGB = (214, 190, 255)
FLAME: RGB = (255, 150, 40)
TRAIL: RGB = (205, 205, 205)
SHELL: RGB = (120, 124, 132)
TRACER_LENGTH, SLUG_LENGTH, MISSILE_LENGTH, TRAIL_LENGTH = 1.5, 4.0, 1.8, 5.0  # m
TRAIL_PUFFS = 6


def draw_projectiles(canvas: Canvas, config: BattleConfig, state: State, battle: int) -> None:
    """Draw all projectiles: missiles in their team's colour with a trail, slugs, smoke shells and tracers."""
    for projectile in state.projectiles[battle, : state.battles[battle]["num_projectiles"]]:
        weapon = config.catalog.weapons[projectile["weapon"]]
        speed = math.hypot(projectile["vx"], projectile["vy"], projectile["vz"]) or 1.0
        direction = projectile["vx"] / speed, projectile["vy"] / speed
        if weapon.flight_rules.guided:
            team = state.mechs[battle, projectile["owner"]]["team"]
            _draw_missile(canvas, projectile, direction, TEAMS[team].colour)
        elif weapon.smoke_radius > 0:
            _draw_trail(canvas, projectile, direction, TRAIL_LENGTH / 2)
            place = canvas.at(projectile["x"], projectile["y"])
            canvas.disc(place, canvas.length(0.4, 2.5), DARK, 255)
            canvas.disc(place, canvas.length(0.25, 1.5), SHELL, 255)
        else:
            draw_streak(canvas, weapon, projectile, direction, 255)


def draw_streak(canvas: Canvas, weapon: Weapon, head: Any, direction: tuple[float, float], alpha: int) -> None:
    """Draw a streak that ends at (x, y) of the record `head`. `direction` is the (x, y) part of a 3D unit vector."""
    slug = weapon.flight == "ballistic"
    length = SLUG_LENGTH if slug else TRACER_LENGTH
    end = canvas.at(head["x"], head["y"])
    tail = canvas.at(head["x"] - length * direction[0], head["y"] - length * direction[1])
    if slug:
        canvas.line(tail, end, SLUG, 4, alpha // 3)
        canvas.line(tail, end, SLUG, 2, alpha)
        canvas.disc(end, canvas.length(0.3, 2), LIGHT, alpha)
    else:
        canvas.line(tail, end, TRACER, 2, alpha)


def _draw_missile(canvas: Canvas, missile: Any, direction: tuple[float, float], colour: RGB) -> None:
    """Draw a dart with flame and smoke trail. A steep climb or dive is drawn as rings, the missile seen end on."""
    _draw_trail(canvas, missile, direction, TRAIL_LENGTH)
    px, py = canvas.at(missile["x"], missile["y"])
    along_x, along_y = direction[0], -direction[1]
    half = canvas.length(MISSILE_LENGTH / 2, 5)
    canvas.disc((px - along_x * half, py - along_y * half), 0.55 * half, FLAME, 255)
    for reach, ink in ((half + 1.5 * canvas.pixel, DARK), (half + 0.5 * canvas.pixel, LIGHT), (0.8 * half, colour)):
        thick = 0.55 * reach
        canvas.draw.polygon(
            [
                (px + along_x * reach, py + along_y * reach),
                (px - along_x * reach - along_y * thick, py - along_y * reach + along_x * thick),
                (px - along_x * reach + along_y * thick, py - along_y * reach - along_x * thick),
            ],
            fill=ink,
        )
    if math.hypot(*direction) < 0.5:
        for reach, ink in ((0.8 * half, DARK), (0.65 * half, LIGHT), (0.4 * half, colour)):
            canvas.disc((px, py), reach, ink, 255)


def _draw_trail(canvas: Canvas, head: Any, direction: tuple[float, float], length: float) -> None:
    for puff in reversed(range(TRAIL_PUFFS)):
        share = (puff + 1) / TRAIL_PUFFS
        behind = share * length
        place = canvas.at(head["x"] - behind * direction[0], head["y"] - behind * direction[1])
        canvas.disc(place, canvas.length(0.25 + 0.3 * share, 1.2 + share), TRAIL, round(170 * (1 - 0.75 * share)))
