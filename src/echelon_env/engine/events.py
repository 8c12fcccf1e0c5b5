"""What happened in a decision, as rows of a bounded record array."""

from __future__ import annotations

from echelon_env.engine._jit import kernel
from echelon_env.engine.state import State


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
) -> None:
    """Append an event to a battle's events of this decision; count it as lost where there is no room."""
    battle, events = state.battles[b], state.events[b]
    if battle.num_events >= events.shape[0]:
        battle.lost_events += 1
        return
    event = events[battle.num_events]
    event.kind, event.tick, event.actor, event.target, event.weapon = kind, battle.tick, actor, target, weapon
    event.x, event.y, event.z, event.dx, event.dy, event.amount = x, y, z, dx, dy, amount
    battle.num_events += 1
