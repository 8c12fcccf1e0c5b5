"""A replay as one HTML file that simulates the battle again, in WebAssembly, and shows it. It loads nothing.

The file holds the viewer (``viewer/`` in the source tree), the engine as WebAssembly, the replay's own file, and the
*world*, see `World.pack`.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import io
import itertools
import os
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from PIL import Image

from echelon_env.config.schema import check_integer
from echelon_env.engine.kernels import browser_module
from echelon_env.render import render_frame
from echelon_env.replays.files import MAX_BYTES, pack
from echelon_env.replays.replay import Replay, ReplayError
from echelon_env.replays.world import World
from echelon_env.storage.atomic import write_bytes

PICTURE_WIDTH = 480  # pixels


def write_page(path: str | os.PathLike[str], replay: Replay) -> None:
    """Write a replay as an HTML file that any browser opens, without a network.

    Raises OSError, ReplayError as `Replay.play` and for a page that would be too large to read, and `BackendError`
    where this installation has no WebAssembly module of the present engine.
    """
    data = make_page(replay).encode()
    if len(data) > MAX_BYTES:
        raise ReplayError(f"{os.fspath(path)}: would have {len(data):,} bytes, expected at most {MAX_BYTES:,}")
    write_bytes(Path(path), data)


def make_page(replay: Replay, live: int | None = None) -> str:
    """The text of the HTML file, see `write_page`.

    `live` is the battle's number on a server that has the next ones: the page may load from it, and has no picture.
    """
    return _make_page(replay, _picture(replay) if live is None else b"", live)


def _make_page(replay: Replay, picture: bytes, live: int | None = None) -> str:
    data = pack(replay)
    header = gzip.decompress(data).partition(b"\n")[0]  # of which the memory is, so that the page can tell another one
    further = {"header": hashlib.sha256(header).hexdigest()} | ({} if live is None else {"live": live})
    world = World(next(replay.play())).pack(**further)
    title = f"{' v '.join(replay.players)} - Echelon replay"
    return fill_page(title, world, replay=data, picture=picture, loads=live is not None)


def _picture(replay: Replay) -> bytes:
    """A PNG of the battle at half time."""
    engine = next(itertools.islice(replay.play(), replay.decisions // 2, None))
    file = io.BytesIO()
    frame = Image.fromarray(render_frame(replay.config, engine.state, 0, PICTURE_WIDTH))
    frame.quantize(64, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(file, "PNG", optimize=True)
    return file.getvalue()


def fill_page(
    title: str,
    world: bytes,
    *,
    replay: bytes = b"",
    picture: bytes = b"",
    starts: Sequence[bytes] = (),
    loads: bool = False,
) -> str:
    """The text of a page of a `World.pack`: of a replay's file, or of a game and the `starts` of its next battles.

    `picture` is a PNG for browsers without scripts; a page that `loads` may do so from its own server. Raises
    `BackendError` where this installation has no WebAssembly module of the present engine.
    """
    parts = {
        "title": html.escape(title),
        "loads": "; connect-src 'self'" if loads else "",
        "engine": _encode(gzip.compress(browser_module(), mtime=0)),
        "replay": _encode(replay),
        "picture": f'<img src="data:image/png;base64,{_encode(picture)}" alt="">' if picture else "",
        "world": _encode(world),
        "starts": " ".join(map(_encode, starts)),
        "viewer": _asset("viewer.js"),
        "style": _asset("viewer.css"),
    }
    return re.sub(r"%(\w+)%", lambda found: parts[found[1]], _asset("page.html"))


class Frame:
    """A replay as a notebook shows it, see `show`."""

    def __init__(self, replay: Replay, height: int) -> None:
        self._picture, self._height = _picture(replay), height
        self._page = _make_page(replay, self._picture)

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self._page)}" width="100%" height="{self._height}"></iframe>'

    def _repr_png_(self) -> bytes:
        return self._picture


def show(replay: Replay, height: int = 640) -> Frame:
    """A replay's page, `height` pixels high, as the last expression of a notebook's cell.

    Where there are no scripts or no HTML, a picture of the battle is shown. Raises as `make_page`.
    """
    return Frame(replay, check_integer("height", height))


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
