"""Replays in a report: pages of `echelon_env.replays` in frames.

A recorded battle is read as data and its page made again, so that no script of a file gets into the report.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from echelon_env.config.schema import ConfigError
from echelon_env.engine.kernels import BackendError
from echelon_env.evaluate import CheckpointError
from echelon_env.replays import Replay, ReplayError
from echelon_env.replays.page import make_page
from echelon_train.errors import TrainError
from echelon_train.report.markup import Html, element, folded, note, section

_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


@dataclass(frozen=True)
class Embedded:
    """A replay as a part of a page, or a remark in its place."""

    markup: Html
    script: str | None = None  # that it runs


def embed_replay(title: str, remark: str, record: Callable[[], Replay], *, opened: bool) -> Embedded:
    """A replay's page in a frame that opens with a click, or a remark that says why there is none."""
    try:
        page = make_page(record())
    except (BackendError, CheckpointError, ConfigError, ReplayError, TrainError, OSError, ValueError) as error:
        return Embedded(note(f"{title}: no replay: {error}"))
    (script,) = _SCRIPT.findall(page)
    # without `allow-same-origin` the frame cannot touch the report
    frame = element("iframe", srcdoc=page, title=title, loading="lazy", sandbox="allow-scripts")
    return Embedded(element("div", folded(title, note(remark), frame, opened=opened), class_="replay"), script)


def replays_section(shown: Sequence[Embedded]) -> Html | None:
    """The section of replays; None without any."""
    return section("Replays", *(each.markup for each in shown)) if shown else None
