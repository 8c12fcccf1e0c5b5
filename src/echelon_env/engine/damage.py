"""The end of a tick: damage and heat arrive together, mechs die, shooters are credited."""

from __future__ import annotations

from echelon_env.engine._jit import kernel
from echelon_env.engine.body import add_heat_from_enemies
from echelon_env.engine.events import record
from echelon_env.engine.state import DEATH, HIT, NO_MECH, State
from echelon_env.engine.tables import Tables


@kernel
def _credit(state: State, b: int, first_event: int) -> None:
    """Share the hit points and kills of this tick among those who hit, in proportion to their hits."""
    battle, mechs, events, pending = state.battles[b], state.mechs[b], state.events[b], state.pending[b]
    for e in range(first_event, battle.num_events):
        event = events[e]
        if event.kind != HIT:
            continue
        target, actor = mechs[event.target], mechs[event.actor]
        arrived = pending[event.target, 0]
        if arrived <= 0.0:
            event.amount = 0.0
            continue
        share = event.amount / arrived
        event.amount = share * min(arrived, target.armour)
        target.hurt_x -= event.dx * event.amount
        target.hurt_y -= event.dy * event.amount
        actor.damage_dealt += event.amount
        actor.total_damage += event.amount
        if arrived >= target.armour:
            actor.kills += share
            actor.total_kills += share


@kernel
def settle(tables: Tables, state: State, b: int, first_event: int) -> None:
    """Apply what the events of this tick, from `first_event` on, sent on its way."""
    battle, mechs, order, pending = state.battles[b], state.mechs[b], state.order[b], state.pending[b]
    if battle.num_events == first_event:
        return
    _credit(state, b, first_event)
    for place in range(order.shape[0]):
        m = order[place]
        mech = mechs[m]
        arrived, heat = pending[m, 0], pending[m, 1]
        pending[m, 0] = pending[m, 1] = 0.0
        if heat > 0.0:
            add_heat_from_enemies(tables.rules[0], tables.classes[mech.mech_class], mech, heat)
        if arrived > 0.0:
            mech.armour = max(0.0, mech.armour - arrived)
            if mech.armour == 0.0:
                mech.alive, mech.died = 0, 1
                mech.shutdown = 0
                mech.vx = mech.vy = mech.vz = 0.0
                state.teams[b, mech.team].mechs_alive -= 1
                record(state, b, DEATH, m, NO_MECH, -1, mech.x, mech.y, mech.z, 0.0, 0.0, 0.0)
