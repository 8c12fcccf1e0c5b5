"""What Echelon promises of its speed, beside what was measured."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.apis import BATCH_ENV, ENGINE, PARALLEL_ENV, VECTOR_ENV
from benchmarks.apis import ENGINE_WITH_RESETS as RESETS
from benchmarks.resets import POOL_RESET
from benchmarks.results import Results
from benchmarks.scaling import OF_ONE
from benchmarks.startup import ALL, COLD, LIBRARY, WARM
from benchmarks.tables import Cell, Table
from benchmarks.training import LOOP, OVER_STOCK, PEAK, SHARE, UPDATE

HOLDS, MISSED, UNKNOWN = "yes", "NO", "-"


@dataclass(frozen=True)
class Goal:
    """A figure that is to be reached, or not to be exceeded."""

    name: str
    goal: float
    least: float
    cell: tuple[str, str, str, str]
    """What was measured: section, table, row and column."""
    of: str | None = None
    """The row of the same column that it is a share of, in percent."""
    at_most: bool = False

    def measured(self, results: Results) -> float | None:
        """The figure, if it was measured."""
        section, table, row, column = self.cell
        value = results.number(section, table, row, column)
        whole = 100.0 if self.of is None else results.number(section, table, self.of, column)
        return None if value is None or whole is None else 100 * value / whole

    def holds(self, measured: float | None) -> str:
        """Whether the least holds, to the three digits that are shown."""
        if measured is None:
            return UNKNOWN
        measured = float(f"{measured:.3g}")
        return HOLDS if (measured <= self.least if self.at_most else measured >= self.least) else MISSED


def _start(backend: str) -> tuple[str, str, str, str]:
    return "startup", "first step", backend, "seconds"


def _api(api: str, size: str = "10 v 10", player: str = "novices") -> tuple[str, str, str, str]:
    return "apis", player, api, size


GOALS = (
    Goal("engine, 5 v 5, live agent-steps/s", 500_000, 300_000, _api(ENGINE, "5 v 5")),
    Goal("engine, 10 v 10", 400_000, 250_000, _api(ENGINE)),
    Goal("engine, 20 v 20", 250_000, 120_000, _api(ENGINE, "20 v 20")),
    Goal("vector env, 10 v 10, % of engine and resets", 85, 85, _api(VECTOR_ENV), RESETS),
    Goal("batch env, 10 v 10, % of engine and resets", 90, 90, _api(BATCH_ENV), RESETS),
    Goal("vector env, random actions, % of engine and resets", 85, 85, _api(VECTOR_ENV, player="random"), RESETS),
    Goal("batch env, random actions, % of engine and resets", 90, 90, _api(BATCH_ENV, player="random"), RESETS),
    Goal("parallel env, one battle of 5 v 5", 150_000, 80_000, _api(PARALLEL_ENV, "5 v 5")),
    Goal("two threads over one, x", 1.9, 1.8, ("scaling", "threads", OF_ONE, "2")),
    Goal(
        "reset of 20 v 20 on a map of a pool, ms", 0.2, 0.2, ("resets", "costs", POOL_RESET, "20 v 20"), at_most=True
    ),
    Goal("with resets from a pool, 10 v 10, %", 95, 90, _api(RESETS), ENGINE),
    Goal("import to first step, library, s", 1, 2, _start(LIBRARY), at_most=True),
    Goal("import to first step, Numba with a warm cache, s", 1.5, 3, _start(WARM), at_most=True),
    Goal("import to first step, Numba with a cold cache, s", 20, 40, _start(COLD), at_most=True),
    Goal("memory of a battle, 10 v 10, MB", 1, 2, ("startup", "memory", ALL, "10 v 10"), at_most=True),
    Goal("an update of recurrent PPO, x sb3-contrib", 3, 3, ("training", "speed", OVER_STOCK, UPDATE)),
    Goal("its whole loop, x sb3-contrib", 2.5, 2.5, ("training", "speed", OVER_STOCK, LOOP)),
    Goal(
        "memory of a rollout at the peak, % of sb3-contrib", 60, 60, ("training", "memory", PEAK, SHARE), at_most=True
    ),
)  # fmt: skip


def table_of_goals(results: Results) -> Table:
    """Goal, least, measurement and whether the least holds."""
    rows: dict[str, tuple[Cell, ...]] = {}
    for goal in GOALS:
        measured = goal.measured(results)
        rows[goal.name] = goal.goal, goal.least, measured, goal.holds(measured)
    columns = "goal", "at least", "measured", "holds"
    notes = (
        "Full rules, partial observability, maps of 100 x 100 x 20 voxels, battles between scripted novices whose own "
        "cost is apart (or random actions where a row says so), one core.",
    )
    return Table("goals", "Goals", "live agent-steps/s where no unit is named", columns, rows, notes)
