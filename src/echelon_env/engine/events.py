"""Events of a decision, in a record array of fixed size."""

from __future__ import annotations

from echelon_env.engine.kernels import kernel
from echelon_env.engine.state import NO_MECH, State


@kernel
def record(
    state: State,
    b: int,
    kind: int,
    actor: int,
    target: int,
    weapon: int,
    x: float,
    y: float,
    z: float,
    dx: float,
    dy: float,
    amount: float,
) -> int:
    """Append an event to a battle's events of this decision.

    Returns its index, or -1 if there was no room; then it is counted as lost.
    """
    battle, events = state.battles[b], state.events[b]
    if battle.num_events >= events.shape[0]:
        battle.lost_events += 1
        return -1
    event = events[battle.num_events]
    event.kind, event.tick, event.actor, event.target, event.weapon = kind, battle.tick, actor, target, weapon
    event.x, event.y, event.z, event.dx, event.dy, event.amount = x, y, z, dx, dy, amount
    battle.num_events += 1
    return int(battle.num_events - 1)


@kernel
def record_change(state: State, b: int, kind: int, m: int) -> None:
    """Append an event about a mech's own condition."""
    mech = state.mechs[b, m]
    record(state, b, kind, m, NO_MECH, -1, mech.x, mech.y, mech.z, 0.0, 0.0, 0.0)
