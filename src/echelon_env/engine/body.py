"""Heat, cooldowns and shutdown."""

from __future__ import annotations

from echelon_env.engine._jit import Row, kernel
from echelon_env.engine.events import record
from echelon_env.engine.state import NO_MECH, SHUTDOWN, State
from echelon_env.engine.tables import Tables


@kernel
def add_heat(rules: Row, mech_class: Row, mech: Row, amount: float) -> None:
    """Heat that a mech brings upon itself; cut at the most it can hold."""
    mech.heat = min(mech.heat + amount, rules.max_heat * mech_class.heat_capacity)


@kernel
def add_heat_from_enemies(rules: Row, mech_class: Row, mech: Row, amount: float) -> None:
    """Heat that enemies add, which alone cannot shut a mech down."""
    limit = rules.max_heat_from_enemies * mech_class.heat_capacity
    mech.heat = max(mech.heat, min(mech.heat + amount, limit))


@kernel
def age_body(rules: Row, mech_class: Row, mech: Row) -> None:
    """One tick of cooling, cooldowns, shutdown and restart."""
    for mount in range(mech.cooldown.shape[0]):
        if mech.cooldown[mount] > 0:
            mech.cooldown[mount] -= 1
    cooling = mech_class.heat_dissipation * rules.dt
    if mech.vent:
        cooling *= rules.vent_factor
    mech.heat = max(0.0, mech.heat - cooling)
    if mech.shutdown:
        if mech.heat <= rules.restart_heat * mech_class.heat_capacity:
            mech.shutdown = 0
    elif mech.heat > mech_class.heat_capacity:
        mech.shutdown = 1
    if mech.shutdown:
        mech.shutdown_ticks += 1


@kernel
def age_all(tables: Tables, state: State, b: int) -> None:
    """One tick of the bodies of a battle's living mechs."""
    mechs, order = state.mechs[b], state.order[b]
    for place in range(order.shape[0]):
        m = order[place]
        mech = mechs[m]
        if not mech.alive:
            continue
        running = not mech.shutdown
        age_body(tables.rules[0], tables.classes[mech.mech_class], mech)
        if running and mech.shutdown:
            record(state, b, SHUTDOWN, m, NO_MECH, -1, mech.x, mech.y, mech.z, 0.0, 0.0, 0.0)
