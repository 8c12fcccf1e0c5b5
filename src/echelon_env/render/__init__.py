"""Rendering of battles: frames, text and GIFs."""

from echelon_env.render.ansi import render_ansi
from echelon_env.render.frame import render_frame
from echelon_env.render.gif import save_gif

__all__ = ["render_ansi", "render_frame", "save_gif"]
