"""What Echelon promises of its speed, beside what was measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.apis import BATCH_ENV, ENGINE, ENGINE_WITH_RESETS, PARALLEL_ENV, VECTOR_ENV
from benchmarks.resets import POOL_RESET
from benchmarks.results import Results
from benchmarks.scaling import OF_ONE
from benchmarks.startup import ALL, COLD, LIBRARY, WARM
from benchmarks.tables import Cell, Table
from benchmarks.training import LOOP, OVER_STOCK, PEAK, SHARE, UPDATE

HOLDS, MISSED, UNKNOWN = "yes", "NO", "-"

Measured = Callable[[Results], float | None]


@dataclass(frozen=True)
class Goal:
    """A figure that is to be reached, or not to be exceeded."""

    name: str
    goal: float
    least: float
    measured: Measured
    at_most: bool = False

    def holds(self, measured: float | None) -> str:
        """Whether the least holds, to the three digits that are shown."""
        if measured is None:
            return UNKNOWN
        measured = float(f"{measured:.3g}")
        return HOLDS if (measured <= self.least if self.at_most else measured >= self.least) else MISSED


def _engine(size: str) -> Measured:
    return lambda results: results.number("apis", "novices", ENGINE, size)


def _share(api: str, player: str, of: str = ENGINE_WITH_RESETS) -> Measured:
    """Percent of the engine with the same resets, which this API starts by itself."""

    def measured(results: Results) -> float | None:
        engine, other = (results.number("apis", player, name, "10 v 10") for name in (of, api))
        return None if engine is None or other is None else 100 * other / engine

    return measured


def _first_step(cache: str) -> Measured:
    return lambda results: results.number("startup", "first step", cache, "seconds")


def _over_stock(what: str) -> Measured:
    return lambda results: results.number("training", "speed", OVER_STOCK, what)


GOALS = (
    Goal("engine, 5 v 5, live agent-steps/s", 500_000, 300_000, _engine("5 v 5")),
    Goal("engine, 10 v 10", 400_000, 250_000, _engine("10 v 10")),
    Goal("engine, 20 v 20", 250_000, 120_000, _engine("20 v 20")),
    Goal("vector env, 10 v 10, % of engine and resets", 85, 85, _share(VECTOR_ENV, "novices")),
    Goal("batch env, 10 v 10, % of engine and resets", 90, 90, _share(BATCH_ENV, "novices")),
    Goal("vector env, random actions, % of engine and resets", 85, 85, _share(VECTOR_ENV, "random")),
    Goal("batch env, random actions, % of engine and resets", 90, 90, _share(BATCH_ENV, "random")),
    Goal(
        "parallel env, one battle of 5 v 5", 150_000, 80_000,
        lambda results: results.number("apis", "novices", PARALLEL_ENV, "5 v 5"),
    ),
    Goal(
        "two threads over one, x", 1.9, 1.8,
        lambda results: results.number("scaling", "threads", OF_ONE, "2"),
    ),
    Goal(
        "reset of 20 v 20 on a map of a pool, ms", 0.2, 0.2,
        lambda results: results.number("resets", "costs", POOL_RESET, "20 v 20"), at_most=True,
    ),
    Goal("with resets from a pool, 10 v 10, %", 95, 90, _share(ENGINE_WITH_RESETS, "novices", ENGINE)),
    Goal("import to first step, library, s", 1, 2, _first_step(LIBRARY), at_most=True),
    Goal("import to first step, Numba with a warm cache, s", 1.5, 3, _first_step(WARM), at_most=True),
    Goal("import to first step, Numba with a cold cache, s", 20, 40, _first_step(COLD), at_most=True),
    Goal(
        "memory of a battle, 10 v 10, MB", 1, 2,
        lambda results: results.number("startup", "memory", ALL, "10 v 10"), at_most=True,
    ),
    Goal("an update of recurrent PPO, x sb3-contrib", 3, 3, _over_stock(UPDATE)),
    Goal("its whole loop, x sb3-contrib", 2.5, 2.5, _over_stock(LOOP)),
    Goal(
        "memory of a rollout at the peak, % of sb3-contrib", 60, 60,
        lambda results: results.number("training", "memory", PEAK, SHARE), at_most=True,
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
