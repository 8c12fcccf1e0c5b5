"""Timers, balance, heat and shutdown."""

from __future__ import annotations

import math

from echelon_env.engine.events import record_change
from echelon_env.engine.hazards import Hazards, apply_hazards
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.engine.state import ECCM, ECM, RESTART, RISE, SHUTDOWN, SILENT, State
from echelon_env.engine.tables import Tables
from echelon_env.engine.wrecks import age_wreck


@kernel
def in_control(mech: Row) -> bool:
    """Whether a mech can turn, walk, jump and fire."""
    return bool(mech.alive and not mech.shutdown and mech.fallen == 0)


@kernel
def radiation(mech: Row) -> int:
    """What a mech radiates now: SILENT, ECM or ECCM."""
    return int(mech.radiates) if mech.alive and not mech.shutdown else SILENT


@kernel
def add_heat(rules: Row, mech_class: Row, mech: Row, amount: float) -> None:
    """Add heat, up to the most that a mech can hold."""
    mech.heat = min(mech.heat + amount, rules.max_heat * mech_class.heat_capacity)


@kernel
def _count_down(mech: Row) -> None:
    for mount in range(mech.cooldown.shape[0]):
        mech.cooldown[mount] = max(0, mech.cooldown[mount] - 1)
    mech.anti_missile_cooldown = max(0, mech.anti_missile_cooldown - 1)
    mech.suppressed = max(0, mech.suppressed - 1)


@kernel
def recovery(rules: Row, mech: Row) -> float:
    """Stability points that a standing mech regains in a tick."""
    share = 1.0
    if mech.legs <= 0.0 or math.sqrt(mech.vx**2 + mech.vy**2) > rules.moving_speed:
        share -= rules.moving_penalty
    if mech.suppressed > 0:
        share -= rules.suppression_penalty
    return float(rules.stability_recovery * max(rules.least_recovery, share) * rules.dt)


@kernel
def _update_stability(state: State, b: int, m: int, rules: Row) -> None:
    """One tick of a mech's stability: it recovers while the mech stands, else the time until it rises runs down."""
    mech = state.mechs[b, m]
    if mech.fallen == 0:
        if mech.stability != rules.max_stability:
            mech.stability = min(rules.max_stability, mech.stability + recovery(rules, mech))
        return
    mech.fallen -= 1
    if mech.fallen == 0:
        mech.stability = rules.risen_stability
        record_change(state, b, RISE, m)


@kernel
def _exchange_heat(rules: Row, mech_class: Row, mech: Row, hazards: Hazards) -> None:
    """One tick of cooling, then of heating by hazards and electronics."""
    cooling = mech_class.heat_dissipation * (rules.vent_factor if mech.vent else 1.0) + hazards.cooling
    mech.heat = max(0.0, mech.heat - cooling * rules.dt)
    heating = 0.0 if mech.shutdown else hazards.heating
    radiates = radiation(mech)
    if radiates == ECM:
        heating += rules.ecm_heat
    elif radiates == ECCM:
        heating += rules.eccm_heat
    if heating > 0.0:
        add_heat(rules, mech_class, mech, heating * rules.dt)


@kernel
def _update_shutdown(state: State, b: int, m: int, rules: Row, mech_class: Row) -> None:
    """Shut down an overheated mech; restart one that has cooled down."""
    mech = state.mechs[b, m]
    if mech.shutdown:
        if mech.heat <= rules.restart_heat * mech_class.heat_capacity:
            mech.shutdown = 0
            record_change(state, b, RESTART, m)
    elif mech.heat > mech_class.heat_capacity:
        mech.shutdown = 1
        state.statistics[b, m].shutdowns += 1
        record_change(state, b, SHUTDOWN, m)
    if mech.shutdown:
        mech.shutdown_ticks += 1


@kernel
def update_bodies(tables: Tables, state: State, b: int) -> None:
    """One tick of timers, stability and heat of a battle's living mechs, and of the wrecks of the dead ones.

    Mechs are updated in the order of their spawn places.
    """
    mechs, order, rules = state.mechs[b], state.order[b], tables.rules[0]
    for place in range(order.shape[0]):
        m = integer(order[place])
        mech = mechs[m]
        if not mech.alive:
            age_wreck(tables, state, b, m)
            continue
        mech_class = tables.classes[mech.mech_class]
        _count_down(mech)
        _update_stability(state, b, m, rules)
        hazards = apply_hazards(tables, state, b, m)
        mech.speed_factor = hazards.speed_factor
        _exchange_heat(rules, mech_class, mech, hazards)
        _update_shutdown(state, b, m, rules, mech_class)
