"""The progress bar."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from stable_baselines3.common.callbacks import BaseCallback

from echelon_train.callbacks.statistics import BattleStatistics


class ProgressCallback(BaseCallback):  # type: ignore[misc]
    """A bar with the samples per second, the time left, the win rate of the last battles and their mean return.

    Parameters
    ----------
    total
        Samples of the whole run.
    statistics
        Where the win rate and the return come from.
    console
        Where to draw.
    """

    def __init__(self, total: int, statistics: BattleStatistics, console: Console) -> None:
        super().__init__()
        self._total = total
        self._statistics = statistics
        self._progress = Progress(
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:3.0f}%"),
            TextColumn("{task.fields[rate]}", style="progress.data.speed"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[battles]}"),
            console=console,
            expand=True,
        )
        self._task: TaskID | None = None

    def close(self) -> None:
        """Stop drawing."""
        self._progress.stop()

    def _on_training_start(self) -> None:
        self._progress.start()
        self._task = self._progress.add_task("", total=self._total, rate="", battles="")

    def _on_step(self) -> bool:
        assert self._task is not None
        speed = self._progress.tasks[0].speed
        rate = f"{speed:,.0f}/s" if speed else ""
        win_rate, mean_return = self._statistics.win_rate, self._statistics.mean_return
        battles = "" if win_rate is None else f"win {win_rate:.0%} return {mean_return:.1f}"
        self._progress.update(self._task, completed=min(self.num_timesteps, self._total), rate=rate, battles=battles)
        return True

    def _on_training_end(self) -> None:
        self.close()
