"""Draws the zone and the effects of the last decision on a map."""

from __future__ import annotations

import math
from typing import Any

from echelon_env.config.battle import BattleConfig
from echelon_env.config.catalog import Weapon
from echelon_env.engine.state import BLUE, HIT, IMPACT, INTERCEPTION, RED, State
from echelon_env.render.canvas import DARK, FIRE, FLASH, LIGHT, Canvas, around
from echelon_env.render.palette import RGB, TEAMS
from echelon_env.render.projectiles import FLAME, draw_streak

BEAMS: tuple[RGB, RGB] = ((110, 220, 255), (255, 120, 160))
PAINT_BEAM: RGB = (70, 255, 130)
INTERCEPTOR: RGB = (120, 255, 240)
DOT, DOT_GAP = 0.25, 0.9  # m, dots of a painter's beam
FLAME_REACH = 0.9  # m, half the width of a flamer's beam at its end
DASH = 15  # degrees
OLDEST = 0.4  # opacity of the effects of a decision's first tick


def draw_zone(canvas: Canvas, battle: Any, teams: Any) -> None:
    """Draw the zone: white if empty, in the colour of the only team inside, or in dashes of both colours."""
    box = around(canvas.at(battle["zone_x"], battle["zone_y"]), battle["zone_radius"] * canvas.scale)
    inside = [team for team in (BLUE, RED) if teams[team]["inside"] > 0]
    colours = [TEAMS[team].colour for team in inside] or [LIGHT]
    alpha = 48 if len(inside) == 1 else 28
    canvas.draw.ellipse(box, fill=(*(colours[0] if len(inside) == 1 else LIGHT), alpha))
    for dash, start in enumerate(range(0, 360, DASH)):
        colour = colours[dash % len(colours)]
        canvas.draw.arc(box, start, start + DASH, fill=colour, width=round(2.5 * canvas.pixel))


def draw_events(canvas: Canvas, config: BattleConfig, state: State, battle: int) -> None:
    """Draw the events of the last decision. Older ones are fainter. Beams start at the shooter's current position."""
    row, mechs = state.battles[battle], state.mechs[battle]
    for event in state.events[battle, : row["num_events"]]:
        age = float(row["tick"] - event["tick"]) / config.decision_repeat
        alpha = round(255 * max(OLDEST, 1.0 - (1.0 - OLDEST) * age))
        place = canvas.at(event["x"], event["y"])
        if event["kind"] == HIT:
            _draw_hit(canvas, config.catalog.weapons[event["weapon"]], mechs[event["actor"]], event, alpha)
        elif event["kind"] == IMPACT:
            _draw_impact(canvas, config.catalog.weapons[event["weapon"]], place, alpha)
        elif event["kind"] == INTERCEPTION:
            defender = mechs[event["actor"]]
            _draw_dots(canvas, canvas.at(defender["x"], defender["y"]), place, INTERCEPTOR, alpha)
            canvas.star(place, canvas.length(1.3, 7), 8, DARK, alpha)
            canvas.star(place, canvas.length(1.1, 6), 8, INTERCEPTOR, alpha)
            canvas.disc(place, canvas.length(0.3, 2), LIGHT, alpha)


def _draw_hit(canvas: Canvas, weapon: Weapon, shooter: Any, hit: Any, alpha: int) -> None:
    """Draw the beam or the last part of the flight, and a spark."""
    place = canvas.at(hit["x"], hit["y"])
    if not weapon.flight_rules.projectile:
        _draw_beam(canvas, weapon, canvas.at(shooter["x"], shooter["y"]), place, BEAMS[shooter["team"]], alpha)
    elif not weapon.flight_rules.guided and weapon.damage > 0:
        draw_streak(canvas, weapon, hit, (hit["dx"], hit["dy"]), alpha)
    if weapon.damage > 0:
        _draw_spark(canvas, place, alpha)


def _draw_spark(canvas: Canvas, place: tuple[float, float], alpha: int) -> None:
    canvas.disc(place, canvas.length(0.5, 2.5), FLASH, alpha // 2)
    canvas.disc(place, canvas.length(0.2, 1), LIGHT, alpha)


def _draw_impact(canvas: Canvas, weapon: Weapon, place: tuple[float, float], alpha: int) -> None:
    """Draw a spark, and for weapons with splash a fireball with the splash radius."""
    if weapon.splash_radius > 0:
        radius = weapon.splash_radius * canvas.scale
        canvas.veil(place, radius, FIRE, alpha // 2)
        canvas.veil(place, 0.6 * radius, FLASH, alpha * 2 // 3)
        canvas.draw.ellipse(around(place, radius), outline=(*FLASH, alpha), width=canvas.pixel)
    if weapon.damage > 0:
        _draw_spark(canvas, place, alpha)


def _draw_beam(
    canvas: Canvas, weapon: Weapon, start: tuple[float, float], end: tuple[float, float], colour: RGB, alpha: int
) -> None:
    """Draw green dots for a painter, a cone of fire for a flamer, or a straight beam for a laser."""
    if weapon.paint > 0:
        _draw_dots(canvas, start, end, PAINT_BEAM, alpha)
    elif weapon.target_heat > weapon.damage:
        for half, ink in ((FLAME_REACH, FIRE), (0.6 * FLAME_REACH, FLAME), (0.25 * FLAME_REACH, FLASH)):
            _draw_cone(canvas, start, end, canvas.length(half, 4 * half), ink, alpha * 3 // 4)
    else:
        canvas.line(start, end, colour, 4, alpha // 3)
        canvas.line(start, end, colour, 2, alpha)
        canvas.line(start, end, LIGHT, 0.5, alpha)


def _draw_dots(canvas: Canvas, start: tuple[float, float], end: tuple[float, float], colour: RGB, alpha: int) -> None:
    count = max(1, round(math.dist(start, end) / canvas.length(DOT_GAP, 5)))
    for dot in range(1, count + 1):
        share = dot / count
        place = start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])
        canvas.disc(place, canvas.length(DOT, 1.6), DARK, alpha // 2)
        canvas.disc(place, canvas.length(0.7 * DOT, 1.1), colour, alpha)


def _draw_cone(
    canvas: Canvas, start: tuple[float, float], end: tuple[float, float], half: float, colour: RGB, alpha: int
) -> None:
    """Draw a triangle from `start` with a round end of radius `half` canvas pixels around `end`."""
    length = math.dist(start, end) or 1.0
    aside_x, aside_y = (start[1] - end[1]) / length * half, (end[0] - start[0]) / length * half
    corners = [start, (end[0] + aside_x, end[1] + aside_y), (end[0] - aside_x, end[1] - aside_y)]
    canvas.draw.polygon(corners, fill=(*colour, alpha))
    canvas.disc(end, half, colour, alpha)
