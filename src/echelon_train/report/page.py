"""A report as one HTML file. It loads nothing, and runs no script but its own and those of the replays in it."""

from __future__ import annotations

import base64
import datetime
import errno
import hashlib
import html
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from echelon_env import __version__
from echelon_env.config.schema import ConfigError
from echelon_env.evaluate import stamp
from echelon_env.storage.atomic import write_bytes
from echelon_train.report.markup import Html, element, join
from echelon_train.report.replays import Embedded

SUFFIX = ".html"
_MARK = b'<meta name="generator" content="echelon report">'
_HEAD = 4096  # bytes in which the mark is


@dataclass(frozen=True)
class Page:
    """The parts of a report."""

    title: str
    lead: Html  # below the title
    sections: Sequence[Html | None]  # of `markup.section`; None is left out
    replays: Sequence[Embedded] = ()  # in these sections; their scripts may run


def check_out(path: Path) -> Path:
    """The path of a report that is to be written.

    Raises ConfigError for another suffix than ``.html``, and for a file that is no report; a report is replaced. Raises
    OSError if the folder is missing or cannot be written.
    """
    if path.suffix != SUFFIX:
        raise ConfigError(f"--out: expected the name of a file that ends in {SUFFIX}, got {path}")
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(path.parent))
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "is not writable, nothing can be written into it", str(path.parent))
    if path.exists() or path.is_symlink():
        if not path.is_file():
            raise ConfigError(f"--out: {path} is no file")
        with path.open("rb") as file:
            if _MARK not in file.read(_HEAD):
                raise ConfigError(f"--out: {path} exists and is no report of echelon: choose another name")
    return path


def write(path: Path, page: Page) -> None:
    """Write a page, as a whole or not at all. Raises OSError."""
    write_bytes(path, render(page).encode("utf-8", "replace"))


def render(page: Page) -> str:
    """The text of the file."""
    script = _asset("report.js")
    sections = [each for each in page.sections if each is not None]
    scripts = [replay.script for replay in page.replays if replay.script is not None]
    allowed = dict.fromkeys([script, *scripts])
    hashes = " ".join(f"'sha256-{_digest(each)}'" for each in allowed)
    made = datetime.datetime.now().astimezone().isoformat(sep=" ", timespec="minutes")
    footer = f"Made {made} by echelon-env {__version__} (engine {stamp()['engine_hash'][:12]})."
    parts = {
        "title": html.escape(page.title),
        "scripts": hashes + (" 'wasm-unsafe-eval'" if scripts else ""),
        "style": _asset("report.css"),
        "script": script,
        "lead": page.lead,
        "contents": join(_links(sections)),
        "body": "\n".join(sections),
        "made": element("p", footer),
    }
    return re.sub(r"%(\w+)%", lambda found: parts[found[1]], _asset("report.html"))


def _links(sections: Sequence[Html]) -> list[Html]:
    found = [re.match(r'<section id="([^"]*)"><h2>(.*?)</h2>', each) for each in sections]
    return [element("a", Html(each[2]), href=f"#{each[1]}") for each in found if each]


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
