"""The render modes of the environments: pictures, text or a window."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import gymnasium

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import ConfigError, nearest_name
from echelon_env.engine.core import BattleEngine
from echelon_env.render.ansi import render_ansi
from echelon_env.render.frame import render_frame

_HAS_WINDOW = importlib.util.find_spec("pygame") is not None

RENDER_MODES = ("rgb_array", "ansi", "human")
"""The render modes. The window of ``"human"`` needs the extra ``render``."""


def check_render_mode(render_mode: str | None) -> str | None:
    """Return the render mode. Raises `ConfigError` if it is unknown or if its package is not installed."""
    if render_mode == "human" and not _HAS_WINDOW:
        raise ConfigError("render_mode 'human' needs a window: pip install 'echelon-env[render]'")
    if render_mode is not None and render_mode not in RENDER_MODES:
        raise ConfigError(f"unknown render_mode {render_mode!r}{nearest_name(str(render_mode), RENDER_MODES)}")
    return render_mode


def render_fps(config: BattleConfig) -> float:
    """Frames per second for real time: the decisions of a second."""
    return 1.0 / config.decision_seconds


class Screen:
    """Renders an engine's battles in one render mode. Copies and pickles exclude the window."""

    _open_windows = 0

    def __init__(self, engine: BattleEngine, render_mode: str | None) -> None:
        self._engine = engine
        self._mode = render_mode
        self._window: Any = None
        self._clock: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_window": None, "_clock": None}

    def show(self) -> None:
        """Update the window in real time. Does nothing in the other modes."""
        if self._mode != "human":
            return
        pygame = importlib.import_module("pygame")
        frame = render_frame(self._engine.config, self._engine.state, 0)
        if self._window is None:
            pygame.init()
            self._window = pygame.display.set_mode((frame.shape[1], frame.shape[0]))
            pygame.display.set_caption("Echelon")
            self._clock = pygame.time.Clock()
            Screen._open_windows += 1
        pygame.event.pump()
        self._window.blit(pygame.surfarray.make_surface(frame.transpose(1, 0, 2)), (0, 0))
        pygame.display.flip()
        self._clock.tick(render_fps(self._engine.config))

    def render(self, battle: int = 0) -> Any:
        """Render a battle: (H, W, 3) uint8 or text; None in the other modes. Warns if there is none."""
        if self._mode is None:
            modes = ", ".join(f'"{mode}"' for mode in RENDER_MODES)
            gymnasium.logger.warn(f"render() does nothing without a render mode: pass render_mode= one of {modes}")
        if self._mode == "rgb_array":
            return render_frame(self._engine.config, self._engine.state, battle)
        if self._mode == "ansi":
            return render_ansi(self._engine.config, self._engine.state, battle)
        return None

    def render_all(self) -> Any:
        """Render all battles as a tuple of pictures or texts; else as `render`."""
        if self._mode in ("rgb_array", "ansi"):
            return tuple(self.render(battle) for battle in range(self._engine.num_battles))
        return self.render()

    def close(self) -> None:
        """Close the window."""
        if self._window is not None:
            self._window = self._clock = None
            Screen._open_windows -= 1
            if Screen._open_windows == 0:
                importlib.import_module("pygame").quit()
