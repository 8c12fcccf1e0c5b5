"""The progress display: a panel on a terminal, periodic lines elsewhere."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean as mean

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from stable_baselines3.common.callbacks import BaseCallback

from echelon_train.runs.callbacks.clock import ClockCallback
from echelon_train.runs.callbacks.results import BattleResults

_TREND = 12  # characters of a trend, which covers all remembered updates
_REMEMBERED = 16 * _TREND
_JUPYTER = "JPY_PARENT_PID"  # variable of the environment of Jupyter's kernels and their processes
_BLOCKS = "▁▂▃▄▅▆▇█"
_NAME = 24  # most characters of an opponent's name
_REFRESHES = 1.0  # of the panel, per second
_RATE_WINDOW = 30.0  # s that the rate is measured over; at least one update
_LINE_SECONDS, _LINE_SHARE, _LINE_AT_LEAST = 30.0, 0.01, 600.0  # when the next line is due; see _line_is_due


@dataclass(frozen=True)
class Shown:
    """A metric of the logger, as it is displayed."""

    metric: str
    label: str
    short: str  # label in a line; empty: not shown there
    spec: str  # of `format`
    sign: float = 1.0

    def text(self, value: float) -> str:
        """The formatted value."""
        return format(self.sign * value, self.spec).replace("%", " %")


SHOWN = (
    Shown("battle/win_rate", "win rate", "win", ".0%"),
    Shown("train/approx_kl", "KL", "kl", ".4f"),
    Shown("eval/win_rate", "evaluated", "eval", ".0%"),
    Shown("train/clip_fraction", "clip fraction", "", ".1%"),
    Shown("battle/return", "return", "return", ".2f"),
    Shown("train/entropy_loss", "entropy", "entropy", ".2f", -1.0),
    Shown("train/learning_rate", "learning rate", "", ".1e"),
    Shown("train/explained_variance", "expl. variance", "ev", ".2f"),
)
"""The metrics of the panel, row by row in two columns."""


class ProgressCallback(BaseCallback):  # type: ignore[misc]
    """Shows a run's progress, speed, time left and learning metrics.

    On a terminal it is a live panel, elsewhere a periodic line. Values come from the model's logger and the battles;
    metrics that an algorithm does not log are left out. `total` are the samples of the whole run.
    """

    def __init__(self, total: int, results: BattleResults, clock: ClockCallback, console: Console) -> None:
        super().__init__()
        self._total = total
        self._results, self._clock = results, clock
        self._console = console
        self._values: dict[str, deque[float]] = {shown.metric: deque(maxlen=_REMEMBERED) for shown in SHOWN}
        self._stage = ""
        self._opponents: dict[str, float] = {}  # win rates by opponent
        self._live: Live | None = None
        self._start = 0  # in samples
        self._marks: deque[tuple[float, int]] = deque()  # (seconds, samples) at the beginnings of rollouts
        self._printed = (0.0, 0)  # (seconds, samples) at the last line

    def close(self) -> None:
        """Stop drawing."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _on_training_start(self) -> None:
        self._start = self.model.num_timesteps
        self._printed = (time.monotonic(), self._start)
        if can_redraw(self._console):
            # drawn by a thread, so that the clock runs during updates and evaluations
            self._live = Live(get_renderable=self._panel, console=self._console, refresh_per_second=_REFRESHES)
            self._live.start(refresh=True)

    def _on_rollout_start(self) -> None:
        now = time.monotonic()
        self._marks.append((now, self.model.num_timesteps))
        while len(self._marks) > 2 and now - self._marks[1][0] > _RATE_WINDOW:
            self._marks.popleft()
        self._collect("train/")

    def _on_step(self) -> bool:
        if self._live is None and self._line_is_due(time.monotonic()):
            self._print_line()
        return True

    def _on_rollout_end(self) -> None:
        self._collect("eval/")  # recorded since the last rollout, possibly by a callback after this one
        for name, value in (("win_rate", self._results.win_rate), ("return", self._results.mean_return)):
            if value is not None:
                self._values[f"battle/{name}"].append(value)
        recorded = self.logger.name_to_value
        self._stage = str(recorded.get("curriculum/scenario", ""))
        beginning, end = "opponent/", "/win_rate"
        self._opponents = {
            name.removeprefix(beginning).removesuffix(end): float(value)
            for name, value in recorded.items()
            if name.startswith(beginning) and name.endswith(end)
        }

    def _on_training_end(self) -> None:
        self._collect("train/", "eval/")
        if self._live is None:
            self._print_line()
        self.close()

    def _collect(self, *prefixes: str) -> None:
        """Copy the logger's recorded values, before they are written at the end of a rollout."""
        for metric, values in self._values.items():
            if metric.startswith(prefixes) and metric in self.logger.name_to_value:
                values.append(float(self.logger.name_to_value[metric]))

    def _line_is_due(self, now: float) -> bool:
        """Whether a line is due: 30 s or more after the last, and a hundredth of the run or 10 minutes after it."""
        seconds, samples = now - self._printed[0], self.model.num_timesteps - self._printed[1]
        return seconds >= _LINE_SECONDS and (samples >= _LINE_SHARE * self._total or seconds >= _LINE_AT_LEAST)

    def _print_line(self) -> None:
        self._printed = (time.monotonic(), self.model.num_timesteps)
        self._console.print(self._line(), highlight=False, markup=False, soft_wrap=True)

    def _rate(self) -> float | None:
        """Recent samples per second, updates included; None before the first update."""
        if len(self._marks) < 2:
            return None
        (began, before), (ended, after) = self._marks[0], self._marks[-1]
        return (after - before) / max(ended - began, 1e-9)

    def _seconds_left(self) -> float | None:
        """Estimated from the mean rates so far, evaluations included; None before the first update."""
        if self.model.num_timesteps == self._start or len(self._marks) < 2:
            return None
        return self._clock.seconds_left(self.model.num_timesteps)

    def _share(self) -> str:
        return f"{100 * self._clock.done(self.model.num_timesteps):.0f} %"

    def _cpu(self) -> str:
        return f"{self._clock.cpu_minutes:.0f} CPU min"

    def _samples(self) -> str:
        return f"{format_count(self.model.num_timesteps)}/{format_count(self._total)}"

    def _games(self) -> str:
        """Battles of the run's budget; empty without one."""
        clock = self._clock
        return (
            ""
            if clock.max_battles == inf
            else f"{format_count(clock.battles)}/{format_count(int(clock.max_battles))} games"
        )

    def _line(self) -> str:
        rate, left = self._rate(), self._seconds_left()
        parts = [f"{self._share():>5}", self._samples(), *filter(None, [self._games()])]
        if rate is not None:
            parts.append(f"{rate:,.0f}/s")
        if left is not None:
            parts.append(f"left {format_clock(left)}")
        parts.append(self._cpu())
        if self._stage:
            parts.append(self._stage)
        for shown in SHOWN:
            values = self._values[shown.metric]
            if shown.short and values:
                parts.append(f"{shown.short} {shown.text(values[-1])}")
        if self._results.learner_win_rate is not None:
            parts.append(f"win without teacher {_percent(self._results.learner_win_rate)}")
        if len(self._opponents) > 1:
            parts.append(self._by_opponent())
        return "  ".join(parts)

    def _by_opponent(self) -> str:
        """Win rates by opponent: ``v expert 45 %, novice 97 %``; of paths only the ends are shown."""
        names = {name: name if len(name) <= _NAME else f"…{name[1 - _NAME :]}" for name in self._opponents}
        return "v " + ", ".join(f"{names[name]} {_percent(rate)}" for name, rate in self._opponents.items())

    def _panel(self) -> RenderableType:
        rate, left = self._rate(), self._seconds_left()
        elapsed = f"{format_clock(self._clock.seconds)}, {self._cpu()}"
        facts = Table.grid(expand=True, padding=(0, 2, 0, 0))
        facts.add_column(ratio=1)
        for _ in range(4):
            facts.add_column(justify="right", no_wrap=True)
        facts.add_row(
            ProgressBar(total=1.0, completed=self._clock.done(self.model.num_timesteps)),
            Text(self._share(), "bold"),
            self._samples(),
            Text("" if rate is None else f"{rate:,.0f}/s", "green"),
            Text(elapsed if left is None else f"{elapsed}, {format_clock(left)} left", "cyan"),
        )
        title = Text(self._stage or "training", "bold")
        parts: list[RenderableType] = [facts, Text(), self._table()]
        if len(self._opponents) > 1:
            parts.append(Text(f"win rate {self._by_opponent()}", "dim"))
        if self._results.learner_win_rate is not None:
            rate_alone = _percent(self._results.learner_win_rate)
            parts.append(Text(f"win rate without the teacher's battles {rate_alone}", "dim"))
        games = self._games() or None
        return Panel(
            Group(*parts), title=title, title_align="left", subtitle=games, subtitle_align="right", border_style="dim"
        )

    def _table(self) -> Table:
        table = Table.grid(expand=True, padding=(0, 1, 0, 0))
        for _ in range(2):
            table.add_column(style="dim", no_wrap=True, ratio=1)
            table.add_column(style="bold", justify="right", no_wrap=True, min_width=7)
            table.add_column(style="blue", no_wrap=True, width=_TREND + 1)
        cells = [self._cells(shown) for shown in SHOWN]
        for left, right in zip(cells[::2], cells[1::2], strict=True):
            table.add_row(*left, *right)
        return table

    def _cells(self, shown: Shown) -> tuple[str, str, str]:
        values = list(self._values[shown.metric])
        if not values:
            return shown.label, "-", ""
        trend = "" if self._console.options.ascii_only else _sparkline([shown.sign * value for value in values])
        return shown.label, shown.text(values[-1]), trend


def can_redraw(console: Console) -> bool:
    """Whether a display can replace what it has drawn: on a terminal, but not in a process that a notebook has started.

    Jupyter passes on that it shows colours, which rich takes for a terminal.
    """
    return console.is_terminal and not console.is_dumb_terminal and _JUPYTER not in os.environ


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def _sparkline(values: Sequence[float]) -> str:
    """A trend of at most `_TREND` characters, from the lowest of its values to the highest."""
    size = -(-len(values) // _TREND)
    means = [mean(values[start : start + size]) for start in range(0, len(values), size)]
    low, high = min(means), max(means)
    if not high > low:
        return _BLOCKS[0] * len(means)
    return "".join(_BLOCKS[round((mean - low) / (high - low) * (len(_BLOCKS) - 1))] for mean in means)


def format_count(number: int) -> str:
    """A number in at most six characters: 950, 43.2k, 1.25M, 20M, 3G."""
    for size, suffix in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= size:
            return f"{number / size:.3g}{suffix}"
    return str(number)


def format_clock(seconds: float) -> str:
    """A duration as 0:07, 12:30, 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
