"""The zone and the shots of the last decision on a map."""

from __future__ import annotations

import math
from typing import Any

from echelon_env.config import BattleConfig
from echelon_env.engine.state import BLUE, HIT, IMPACT, RED, State
from echelon_env.render.canvas import LIGHT, Canvas
from echelon_env.render.palette import RGB, TEAMS

FLASH: RGB = (255, 226, 120)
TRACER: RGB = (255, 240, 150)
BEAMS: tuple[RGB, RGB] = ((110, 220, 255), (255, 120, 160))
TRACER_LENGTH = 1.5  # m
DASH = 15  # degrees


def draw_zone(canvas: Canvas, battle: Any, teams: Any) -> None:
    """The zone's circle: white while empty, in the colour of the one team inside, in dashes of both if contested."""
    x, y = canvas.at(battle["zone_x"], battle["zone_y"])
    radius = battle["zone_radius"] * canvas.scale
    box = (x - radius, y - radius, x + radius, y + radius)
    inside = [team for team in (BLUE, RED) if teams[team]["tonnage"] > 0]
    colours = [TEAMS[team].colour for team in inside] or [LIGHT]
    alpha = 60 if len(inside) == 1 else 28
    canvas.draw.ellipse(box, fill=(*(colours[0] if len(inside) == 1 else LIGHT), alpha))
    for dash, start in enumerate(range(0, 360, DASH)):
        colour = colours[dash % len(colours)]
        canvas.draw.arc(box, start, start + DASH, fill=colour, width=round(2.5 * canvas.pixel))


def draw_shots(canvas: Canvas, config: BattleConfig, state: State, battle: int) -> None:
    """Beams (from where the shooter is now), tracers and impacts of the last decision, the older the fainter."""
    row = state.battles[battle]
    for event in state.events[battle, : row["num_events"]]:
        if event["kind"] not in (HIT, IMPACT):
            continue
        age = float(row["tick"] - event["tick"]) / config.decision_repeat
        alpha = round(255 * max(0.4, 1.0 - 0.6 * age))
        place = canvas.at(event["x"], event["y"])
        if event["kind"] == HIT and config.catalog.weapons[event["weapon"]].flight == "hitscan":
            shooter = state.mechs[battle, event["actor"]]
            _draw_beam(canvas, canvas.at(shooter["x"], shooter["y"]), place, BEAMS[shooter["team"]], alpha)
        elif event["kind"] == HIT:
            _draw_tracer(canvas, event, (event["dx"], event["dy"]), alpha)
        canvas.disc(place, canvas.length(0.5, 2.5), FLASH, alpha // 2)
        canvas.disc(place, canvas.length(0.2, 1), LIGHT, alpha)
    for projectile in state.projectiles[battle, : row["num_projectiles"]]:
        speed = math.hypot(projectile["vx"], projectile["vy"]) or 1.0
        _draw_tracer(canvas, projectile, (projectile["vx"] / speed, projectile["vy"] / speed), 255)


def _draw_tracer(canvas: Canvas, head: Any, direction: tuple[float, float], alpha: int) -> None:
    """A streak that ends at a record's (x, y), after a flight in `direction`, a unit vector."""
    tail = canvas.at(head["x"] - TRACER_LENGTH * direction[0], head["y"] - TRACER_LENGTH * direction[1])
    canvas.line(tail, canvas.at(head["x"], head["y"]), TRACER, 2, alpha)


def _draw_beam(canvas: Canvas, start: tuple[float, float], end: tuple[float, float], colour: RGB, alpha: int) -> None:
    canvas.line(start, end, colour, 4, alpha // 3)
    canvas.line(start, end, colour, 2, alpha)
    canvas.line(start, end, LIGHT, 0.5, alpha)
