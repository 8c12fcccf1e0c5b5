"""The floors of `benchmarks.floor` as a section, and beside them what the phases were measured to take."""

from __future__ import annotations

from benchmarks import floor
from benchmarks.apis import SIZES
from benchmarks.phases import LIVE, SUM, WHOLE
from benchmarks.results import Results
from benchmarks.tables import Cell, Table
from benchmarks.timing import Effort, tell

FLOOR_RATE = "live agent-steps/s"
WHOLE_FLOOR = "all"  # of `floor.measure`


def floors(effort: Effort) -> list[Table]:
    """Floors in microseconds a battle and decision, and the rate that follows from their sum."""
    sizes = dict(list(SIZES.items())[1:3]) if effort.quick else dict(list(SIZES.items())[1:])
    tell("floors: counting, and measuring the machine's rates")
    found = {size: floor.measure(scenario, effort.decisions) for size, scenario in sizes.items()}
    phases = [phase for phase in next(iter(found.values()))["floor_us"] if phase != WHOLE_FLOOR]
    rows: dict[str, tuple[Cell, ...]] = {
        **{phase: tuple(one["floor_us"][phase] for one in found.values()) for phase in phases},
        SUM: tuple(one["floor_us"][WHOLE_FLOOR] for one in found.values()),
        WHOLE: tuple(one["measured_us"] for one in found.values()),
        "the step over its floor, x": tuple(one["ratio"] for one in found.values()),
        LIVE: tuple(one["live_mechs"] for one in found.values()),
        FLOOR_RATE: tuple(one["floor_agent_steps"] for one in found.values()),
    }
    note = (
        "What the rules cost if all that they need, and nothing else, ran at the rates of tight loops on this machine."
    )
    size = "10 v 10"
    terms = {
        f"{term['phase']}: {term['what']}": (term["count"], term["ns"], term["us"]) for term in found[size]["terms"]
    }
    return [
        Table("floors", "Floors", "us a battle and decision", tuple(found), rows, (note,)),
        Table("terms", f"Terms of the floor, {size}", "a battle and decision", ("count", "ns each", "us"), terms),
    ]


def phases_beside_floors(results: Results) -> Table:
    """The phases' measured times, each beside its floor, where both were measured."""
    phases = results.sections["phases"]["phases"]
    bottom = results.sections.get("floors", {}).get("floors")
    columns: list[str] = []
    rows: dict[str, list[Cell]] = {row: [] for row in phases.rows}
    for size in phases.columns:
        columns += [size, "floor"]
        for row, cells in rows.items():
            known = bottom is not None and size in bottom.columns and row in bottom.rows and row not in (WHOLE, LIVE)
            cells += [phases.cell(row, size), bottom.cell(row, size) if bottom is not None and known else None]
    shown = {row: tuple(cells) for row, cells in rows.items()}
    return Table("beside", "Phases and floors", phases.unit, tuple(columns), shown, phases.notes)
