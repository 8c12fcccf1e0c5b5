"""Conversion of action vectors to the commands that mechs carry out in a decision."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from echelon_env.engine.geometry import clip
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.engine.state import BY_DAMAGE, BY_DISTANCE, ECCM, ECM, NO_MECH, SILENT, State
from echelon_env.engine.tables import Tables
from echelon_env.layout.actions import ACTION_HIGH, ACTION_LOW, COMM_DIM, TARGET_CHOICES, Action

DISPLAYS = BY_DAMAGE + 1


@kernel
def clean(mech: Row, action: Any) -> None:
    """Clip an action to its bounds in place. Set non-finite entries to 0 and count them."""
    bad = 0
    for i in range(action.shape[0]):
        value = action[i]
        finite = math.isfinite(value)
        action[i] = clip(value, ACTION_LOW, ACTION_HIGH) if finite else 0.0
        bad += not finite
    mech.bad_actions += bad


@kernel
def _clear_command(mech: Row) -> None:
    mech.throttle = mech.strafe = mech.jet = mech.turn = 0.0
    mech.vent = 0
    mech.radiates = SILENT
    mech.target = NO_MECH
    mech.transmits = 0
    mech.display = BY_DISTANCE
    for mount in range(mech.trigger.shape[0]):
        mech.trigger[mount] = 0


@kernel
def command(rules: Row, mech_class: Row, mech: Row, action: Any) -> None:
    """Convert a clean action (A,) float32 to a living mech's command. Blocks that are switched off change nothing."""
    throttle, strafe = np.float64(action[Action.THROTTLE]), np.float64(action[Action.STRAFE])
    length = math.sqrt(throttle * throttle + strafe * strafe)
    if length > 1.0:
        throttle, strafe = throttle / length, strafe / length
    mech.throttle, mech.strafe = throttle, strafe
    mech.jet = max(0.0, np.float64(action[Action.JET]))
    mech.turn = np.float64(action[Action.TURN])
    for mount in range(mech.trigger.shape[0]):
        mech.trigger[mount] = 1 if action[Action.PRIMARY + mount] > 0.0 else 0
    mech.vent = 1 if action[Action.VENT] > 0.0 else 0
    mech.radiates = SILENT
    if mech_class.electronics:
        if action[Action.ECCM] > 0.0:
            mech.radiates = ECCM
        elif action[Action.ECM] > 0.0:
            mech.radiates = ECM
    if rules.target_choice:
        best, chosen = 0.0, integer(NO_MECH)
        for choice in range(TARGET_CHOICES):
            preference = np.float64(action[Action.TARGET_0 + choice])
            if preference > best:
                best, chosen = preference, integer(mech.contacts[choice])
        if chosen != NO_MECH:
            mech.target = chosen
    mech.display = BY_DISTANCE
    if rules.display:
        for choice in range(1, DISPLAYS):
            if action[Action.DISPLAY_NEAREST + choice] > action[Action.DISPLAY_NEAREST + mech.display]:
                mech.display = choice
    mech.transmits = 0
    if rules.messages:
        mech.transmits = 0 if mech.shutdown else 1
        for i in range(COMM_DIM):
            mech.message[i] = np.float64(action[Action.COMM_0 + i])


@kernel
def clear_decision(state: State, b: int) -> None:
    """Clear the events and the counters of the last decision, but not what is observed of it."""
    state.battles[b].num_events = 0
    for m in range(state.mechs.shape[1]):
        mech = state.mechs[b, m]
        mech.bad_actions = 0
        mech.died = 0
        mech.shutdown_ticks = 0
        mech.damage_dealt = mech.friendly_damage = mech.kills = mech.assists = mech.loss = 0.0


@kernel
def read_commands(tables: Tables, state: State, actions: Any, b: int) -> None:
    """Convert the actions (M, A) of a battle to commands. Dead mechs get an empty command."""
    mechs = state.mechs[b]
    for m in range(mechs.shape[0]):
        mech = mechs[m]
        clean(mech, actions[m])
        mech.hurt_x = mech.hurt_y = 0.0
        state.statistics[b, m].bad_actions += mech.bad_actions
        if mech.alive:
            command(tables.rules[0], tables.classes[mech.mech_class], mech, actions[m])
        else:
            _clear_command(mech)
