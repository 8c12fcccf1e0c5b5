"""Draws the header above a map (time, scores, mechs) and the banner with the outcome."""

from __future__ import annotations

from PIL import Image, ImageDraw

from echelon_env.config.battle import BattleConfig
from echelon_env.engine.state import BLUE, DRAW, REASONS, RED, State
from echelon_env.render.canvas import DARK, LIGHT, font
from echelon_env.render.palette import RGB, TEAMS

TROUGH: RGB = (58, 58, 62)


def header_height(width: int) -> int:
    """Height in pixels of the header of a frame that is `width` pixels wide."""
    return max(36, 2 * round(0.04 * width))


def draw_header(frame: Image.Image, config: BattleConfig, state: State, battle: int) -> None:
    """Draw the time in the centre, and for each team its living mechs and a score bar that grows to the centre."""
    width = frame.width
    height = header_height(width)
    draw = ImageDraw.Draw(frame)
    draw.rectangle((0, 0, width, height - 1), fill=DARK)
    margin, text = height // 8, min(round(height * 0.36), width // 32)
    seconds = state.battles[battle]["step_count"] * config.decision_seconds
    limit = config.max_steps * config.decision_seconds
    draw.text((width / 2, margin), f"{seconds:.1f} / {limit:g} s", font=font(text), anchor="mt", fill=LIGHT)
    bar_top, bar_bottom = round(height * 0.52), height - margin - 1
    bar_width = width // 2 - 2 * margin
    for team, style in enumerate(TEAMS):
        row = state.teams[battle, team]
        edge, anchor, inward = ((margin, "l", 1), (width - 1 - margin, "r", -1))[team]
        mechs = f"{style.name.upper()}  {row['mechs_alive']}/{len(config.rosters[team])} mechs"
        draw.text((edge, margin), mechs, font=font(text), anchor=f"{anchor}t", fill=LIGHT)
        filled = round(bar_width * min(1.0, row["score"] / config.zone.score_to_win))
        for length, colour in ((bar_width, TROUGH), (filled, style.colour)):
            if length > 0:
                ends = sorted((edge, edge + inward * length))
                draw.rectangle((ends[0], bar_top, ends[1], bar_bottom), fill=colour)
        score = f"{row['score']:.1f} / {config.zone.score_to_win:g} s"
        where = (edge + inward * bar_width / 2, (bar_top + bar_bottom) / 2)
        draw.text(where, score, font=font(text), anchor="mm", fill=LIGHT)


def outcome_text(state: State, battle: int) -> str:
    """The winner of a finished battle and the reason, such as ``BLUE WINS by elimination``."""
    row = state.battles[battle]
    reason = REASONS[row["reason"]].replace("_", " ")
    return f"DRAW by {reason}" if row["winner"] == DRAW else f"{TEAMS[row['winner']].name.upper()} WINS by {reason}"


def draw_banner(frame: Image.Image, state: State, battle: int) -> None:
    """Draw the outcome of a finished battle across the southern part of the map."""
    winner = state.battles[battle]["winner"]
    half = frame.width * 0.045
    middle = frame.height - 2 * half
    draw = ImageDraw.Draw(frame, "RGBA")
    colour = TEAMS[winner].colour if winner in (BLUE, RED) else TROUGH
    draw.rectangle((0, middle - half, frame.width, middle + half), fill=(*DARK, 215))
    for y in (middle - half, middle + half):
        draw.line((0, y, frame.width, y), fill=colour, width=max(2, frame.width // 200))
    face = font(round(frame.width * 0.05))
    draw.text((frame.width / 2, middle), outcome_text(state, battle), font=face, anchor="mm", fill=LIGHT)
