"""The display of a league run: one screen of 80 columns on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from echelon_train.league.ratings.glicko2 import format_rating
from echelon_train.runs.callbacks.progress import can_redraw, format_clock, format_count
from echelon_train.supervisor.metrics import Progress
from echelon_train.supervisor.supervisor import Status, TaskStatus

WIDTH = 80
LINE_SECONDS = 60.0
"""Time between two lines where there is no terminal; events come at once."""

_MEMBERS = 8  # of the standings that are shown
_EVENTS = 6


@contextmanager
def screen(console: Console) -> Iterator[Callable[[Status], None]]:
    """Yields a function that shows a status: on a terminal a screen, elsewhere events and a line every minute."""
    if can_redraw(console):
        with Live(console=console, auto_refresh=False) as live:
            yield lambda status: live.update(render(status), refresh=True)
    else:
        yield _Lines(console)


class _Lines:
    """Prints new events, and the learners and ratings from time to time."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._next = 0  # number of the first event that is not printed
        self._printed = time.monotonic()

    def __call__(self, status: Status) -> None:
        for number, event in status.events:
            if number >= self._next:
                self._print(event)
                self._next = number + 1
        if time.monotonic() - self._printed >= LINE_SECONDS:
            self._printed = time.monotonic()
            self._print(line(status))

    def _print(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)


def line(status: Status) -> str:
    """A status in one line."""
    parts = [format_clock(status.seconds)]
    for task in status.learners:
        decisions, _, score, snapshot = _progress(task, status.stage)
        known = f" {decisions}, score {score}, snapshot {snapshot}" if task.progress != Progress() else ""
        parts.append(f"{task.name}{known}" + ("" if task.state == "running" else f" ({task.state})"))
    parts.append(f"{status.matches} matches, {status.ratings}")
    if status.champion is not None:
        parts.append(f"champion {status.champion}")
    return "; ".join(parts)


def render(status: Status) -> RenderableType:
    """A status as a screen, at most `WIDTH` columns wide."""
    left = "" if status.seconds_left is None else f", {format_clock(status.seconds_left)} left"
    head = Table.grid(expand=True)
    head.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    head.add_column(justify="right", no_wrap=True)
    head.add_row(Text(str(status.league), "bold"), Text(f"{format_clock(status.seconds)}{left}", "cyan"))
    parts: list[RenderableType] = [
        head,
        Text(),
        _learners(status),
        Text(),
        _standings(status),
        Text(),
        _doing(status),
        Text(),
    ]
    parts += [Text(event, "dim", no_wrap=True, overflow="ellipsis") for _, event in [*status.events][-_EVENTS:]]
    grid = Table.grid()
    grid.add_column(width=WIDTH)
    grid.add_row(Group(*parts))
    return grid


def _learners(status: Status) -> Table:
    table = Table.grid(expand=True, padding=(0, 2, 0, 0))
    for justify in ("left", "right", "right", "right", "right"):
        table.add_column(justify=justify, no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_row(*(Text(name, "dim") for name in ("learner", "decisions", "per s", "score", "snapshot", "state")))
    for task in status.learners:
        table.add_row(task.name, *_progress(task, status.stage), _state(task))
    return table


def _progress(task: TaskStatus, stage: int) -> tuple[str, str, str, str]:
    """Decisions, decisions per second, score, and what is left until the next snapshot."""
    progress, speed = task.progress, task.progress.speed if task.state == "running" else None
    left = "-"
    if progress.stage_left is not None:
        decisions = round(progress.stage_left * stage)
        left = f"in {format_count(decisions)}" + (f" ({format_clock(decisions / speed)})" if speed else "")
    return (
        "-" if progress.steps is None else format_count(progress.steps),
        "-" if speed is None else f"{speed:,.0f}",
        "-" if progress.score is None else f"{100 * progress.score:.0f} %",
        left,
    )


def _state(task: TaskStatus) -> Text:
    style = {"running": "green", "failed": "bold red", "restarting": "yellow"}.get(task.state, "dim")
    return Text(f"{task.state}{task.note and ': ' + task.note}", style)


def _standings(status: Status) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for justify in ("left", "right", "right"):
        table.add_column(justify=justify, no_wrap=True)
    table.add_column(no_wrap=True)
    active = [each for each in status.standings if each.member.state == "active"]
    table.add_row(*(Text(name, "dim") for name in ("member", "rating ± 95%", "maps", "")))
    for each in active[:_MEMBERS]:
        mark = Text("champion", "bold") if each.member.name == status.champion else Text()
        table.add_row(each.member.name, format_rating(each.rating), f"{each.games:,}", mark)
    if len(active) > _MEMBERS:
        table.add_row(Text(f"and {len(active) - _MEMBERS} more", "dim"), "", "", "")
    return table


def _doing(status: Status) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=WIDTH - 10)
    table.add_row("matches", Text(f"{status.matches:,} recorded by this run; {status.ratings}"))
    table.add_row("next", Text(_next(status)))
    return table


def _next(status: Status) -> str:
    """What comes next: a member whose rating is uncertain, or snapshots."""
    active = [each for each in status.standings if each.member.state == "active"]
    uncertain = [each for each in active if each.rating.deviation > status.until_rd]
    if uncertain:
        worst = max(uncertain, key=lambda each: each.rating.deviation)
        return f"matches of {worst.member.name}"
    return "snapshots of the learners"
