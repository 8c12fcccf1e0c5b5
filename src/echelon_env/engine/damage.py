"""The end of a tick: pending effects are applied at once, attackers are credited, mechs fall and die."""

from __future__ import annotations

from echelon_env.engine.body import add_heat
from echelon_env.engine.events import record, record_change
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.engine.state import (
    BODY,
    DEATH,
    FALL,
    HAZARD,
    HEAT,
    HIT,
    LEGGED,
    LEGS,
    PAINT,
    SPLASH,
    STABILITY,
    State,
)
from echelon_env.engine.tables import Tables
from echelon_env.engine.voxels import settle_bursts
from echelon_env.engine.wrecks import place_wreck
from echelon_env.engine.zone import is_contested, is_inside


@kernel
def _contested_factor(state: State, b: int, mech: Row, rules: Row, factor: float) -> float:
    """Weight of a kill, an assist or a death of a mech: `factor` inside a contested zone, else 1."""
    battle = state.battles[b]
    return factor if battle.contested and is_inside(rules, battle, mech) else 1.0


@kernel
def _credit_kill(tables: Tables, state: State, b: int, event: Row, share: float) -> None:
    """Credit an enemy's share of a kill, and an assist to the mech that painted the target for the enemy's pack."""
    mechs, statistics, rules = state.mechs[b], state.statistics[b], tables.rules[0]
    actor = mechs[event.actor]
    actor.kills += share * _contested_factor(state, b, actor, rules, rules.contested_kill)
    statistics[event.actor].kills += share
    mark = state.paint[b, actor.pack, event.target]
    if mark.ticks > 0 and mark.painter != event.actor:
        painter = mechs[mark.painter]
        painter.assists += share * _contested_factor(state, b, painter, rules, rules.contested_kill)
        statistics[mark.painter].assists += share


@kernel
def _credit(tables: Tables, state: State, b: int, event: Row) -> None:
    """Reduce an event's damage to its share of the armour that its target really loses, and credit its actor."""
    mechs, statistics = state.mechs[b], state.statistics[b]
    target = mechs[event.target]
    arrived = state.pending[b, event.target, BODY]
    if arrived <= 0.0:
        return
    share = event.amount / arrived
    event.amount = share * min(arrived, target.armour)
    statistics[event.target].damage_taken += event.amount
    if event.kind == HAZARD:
        return
    target.hurt_x -= event.dx * event.amount
    target.hurt_y -= event.dy * event.amount
    actor = mechs[event.actor]
    if actor.team == target.team:
        actor.friendly_damage += event.amount
        statistics[event.actor].friendly_damage += event.amount
        return
    actor.damage_dealt += event.amount
    statistics[event.actor].damage_dealt += event.amount
    if arrived >= target.armour:
        _credit_kill(tables, state, b, event, share)


@kernel
def _credit_all(tables: Tables, state: State, b: int, first_event: int) -> None:
    battle, events = state.battles[b], state.events[b]
    for e in range(first_event, battle.num_events):
        kind = events[e].kind
        if kind in (HIT, SPLASH, HAZARD):
            _credit(tables, state, b, events[e])


@kernel
def _apply_effects(tables: Tables, state: State, b: int, first_event: int) -> None:
    """Apply suppression and paint of this tick's hits."""
    battle, events, mechs = state.battles[b], state.events[b], state.mechs[b]
    for e in range(first_event, battle.num_events):
        event = events[e]
        if event.kind != HIT:
            continue
        weapon, target = tables.weapons[event.weapon], mechs[event.target]
        target.suppressed = max(target.suppressed, weapon.suppression)
        if weapon.paint > 0:
            actor = mechs[event.actor]
            mark = state.paint[b, actor.pack, event.target]
            mark.ticks, mark.painter = weapon.paint, event.actor
            state.statistics[b, event.actor].paints += 1
            actor_index, target_index = integer(event.actor), integer(event.target)
            record(
                state,
                b,
                PAINT,
                actor_index,
                target_index,
                integer(event.weapon),
                event.x,
                event.y,
                event.z,
                0.0,
                0.0,
                0.0,
            )


@kernel
def _die(tables: Tables, state: State, b: int, m: int) -> None:
    rules, mech = tables.rules[0], state.mechs[b, m]
    mech.loss = _contested_factor(state, b, mech, rules, rules.contested_death)
    mech.alive, mech.died = 0, 1
    mech.shutdown = mech.fallen = 0
    mech.vx = mech.vy = mech.vz = 0.0
    state.teams[b, mech.team].mechs_alive -= 1
    state.statistics[b, m].deaths += 1
    record_change(state, b, DEATH, m)


@kernel
def _apply_pending(tables: Tables, state: State, b: int, m: int) -> None:
    """Apply pending heat, damage and loss of stability to a living mech."""
    rules, mech, pending = tables.rules[0], state.mechs[b, m], state.pending[b, m]
    if pending[HEAT] > 0.0:
        add_heat(rules, tables.classes[mech.mech_class], mech, pending[HEAT])
    mech.armour = max(0.0, mech.armour - pending[BODY])
    if mech.armour == 0.0:
        _die(tables, state, b, m)
        return
    if pending[LEGS] > 0.0 and mech.legs > 0.0:
        mech.legs = max(0.0, mech.legs - pending[LEGS])
        if mech.legs == 0.0:
            record_change(state, b, LEGGED, m)
    if pending[STABILITY] > 0.0 and mech.fallen == 0:
        mech.stability = max(0.0, mech.stability - pending[STABILITY])
        if mech.stability == 0.0:
            mech.fallen = rules.fall_ticks
            state.statistics[b, m].falls += 1
            record_change(state, b, FALL, m)


@kernel
def _update_contested(tables: Tables, state: State, b: int) -> None:
    """Store whether the zone is contested, in ticks in which a mech dies."""
    mechs, pending = state.mechs[b], state.pending[b]
    for m in range(mechs.shape[0]):
        if mechs[m].alive and pending[m, BODY] >= mechs[m].armour:
            state.battles[b].contested = is_contested(tables.rules[0], state, b)
            return


@kernel
def settle(tables: Tables, state: State, b: int, first_event: int) -> None:
    """Apply all pending effects of this tick, whose events begin at the index `first_event`."""
    battle, order, pending = state.battles[b], state.order[b], state.pending[b]
    if battle.num_events == first_event < state.events.shape[1]:
        return
    _update_contested(tables, state, b)
    _credit_all(tables, state, b, first_event)
    _apply_effects(tables, state, b, first_event)
    first_death = battle.num_events
    for place in range(order.shape[0]):
        m = integer(order[place])
        if state.mechs[b, m].alive:
            _apply_pending(tables, state, b, m)
        pending[m, :] = 0.0
    settle_bursts(tables, state, b)
    for e in range(first_death, battle.num_events):
        if state.events[b, e].kind == DEATH:
            place_wreck(tables, state, b, integer(state.events[b, e].actor))
