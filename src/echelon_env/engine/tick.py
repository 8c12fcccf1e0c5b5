"""The order of phases in a physics tick and in a decision, and the step of a range of battles."""

from __future__ import annotations

from typing import Any

from echelon_env.engine.body import update_bodies
from echelon_env.engine.commands import clean, clear_decision, command, read_commands
from echelon_env.engine.damage import settle
from echelon_env.engine.intel import share_intel
from echelon_env.engine.kernels import entry_point, integer, kernel
from echelon_env.engine.movement import list_near, move_all
from echelon_env.engine.observe import observe_all
from echelon_env.engine.outcome import decide_outcome, flag_rows
from echelon_env.engine.paint import age_paint
from echelon_env.engine.projectiles import fly_all
from echelon_env.engine.reward import reward_all
from echelon_env.engine.sensors import keep_targets, list_all_contacts, update_visibility
from echelon_env.engine.setup import pack_ground, place_all
from echelon_env.engine.smoke import age_clouds
from echelon_env.engine.state import NO_MECH, Outputs, State
from echelon_env.engine.tables import Tables
from echelon_env.engine.targeting import valid_target
from echelon_env.engine.turns import end_of_turn, first_turn, next_turn
from echelon_env.engine.weapons import fire_all
from echelon_env.engine.zone import score_all


@kernel
def tick(tables: Tables, state: State, b: int) -> None:
    """One physics tick of a battle."""
    first_event = state.battles[b].num_events
    age_clouds(state, b)
    age_paint(tables, state, b)
    update_bodies(tables, state, b)
    move_all(tables, state, b)
    fire_all(tables, state, b)
    fly_all(tables, state, b)
    settle(tables, state, b, first_event)
    state.battles[b].tick += 1


@kernel
def perceive(tables: Tables, state: State, b: int) -> None:
    """Update what a battle's mechs perceive: visibility, contacts and intel."""
    update_visibility(tables, state, b)
    list_all_contacts(tables, state, b)
    keep_targets(tables, state, b)
    share_intel(tables, state, b)


@kernel
def decide(tables: Tables, state: State, actions: Any, out: Outputs, b: int) -> None:
    """One decision of a battle that is not over, without the perception that follows it."""
    clear_decision(state, b)
    read_commands(tables, state, actions[b], b)
    list_near(tables, state, b)
    for _ in range(tables.rules[0].decision_repeat):
        tick(tables, state, b)
    state.battles[b].step_count += 1
    score_all(tables, state, b)
    decide_outcome(tables, state, b)
    flag_rows(tables, state, b, out.terminated[b], out.truncated[b])
    reward_all(tables, state, b, out.components[b], out.rewards[b])
    state.used[b].events = max(state.used[b].events, state.battles[b].num_events)


@kernel
def _write_idle_outputs(state: State, out: Outputs, b: int) -> None:
    """Write the outputs of a battle that was over before the step."""
    clear_decision(state, b)
    out.rewards[b, :] = 0.0
    out.components[b, :, :] = 0.0
    out.terminated[b, :] = False
    out.truncated[b, :] = False


DECIDE, PERCEIVE, OBSERVE = integer(0), integer(1), integer(2)
"""Parts of a step: all of it, what the mechs perceive and observe, or what they observe."""


@kernel
def play_one(
    tables: Tables, state: State, actions: Any, out: Outputs, places: Any, observations: Any, part: int, b: int
) -> None:
    """One decision of a battle, or a part of it, see `step_range`."""
    over = state.battles[b].over
    if part == DECIDE:
        if over:
            _write_idle_outputs(state, out, b)
        else:
            decide(tables, state, actions, out, b)
    if part != OBSERVE and not over:
        perceive(tables, state, b)
    observe_all(tables, state, b, places[b], observations)


@entry_point
def step_range(
    tables: Tables,
    state: State,
    actions: Any,
    out: Outputs,
    turn: Any,
    places: Any,
    observations: Any,
    first: int,
    last: int,
    at_once: int,
    part: int,
) -> None:
    """One decision of the battles from `first` to `last` - 1; those that are over do not change.

    The observations are written into rows (R, D), to `places` (B, M), see `ObservationRows`. `part` is DECIDE,
    PERCEIVE, with which battles start, or OBSERVE. Threads share the battles as `turns` says.
    """
    at = first_turn(turn, first, at_once)
    while at < last:
        for b in range(at, end_of_turn(at, last, at_once)):
            play_one(tables, state, actions, out, places, observations, part, b)
        at = next_turn(turn, last, at_once)


@entry_point
def pack_terrain(tables: Tables, state: State, top: int, b: int) -> None:
    """Compute what follows from the voxels of a battle: its columns, its blocks and `num_hazards`.

    All voxels above `top` metres are air.
    """
    pack_ground(tables, state, top, b)


@entry_point
def begin_battle(
    tables: Tables, state: State, spawns: Any, classes: Any, top: int, b: int
) -> None:  # fmt: skip
    """Start battle b, whose lasting arrays are zeroed and whose voxels, seed, zone and `mechs_alive` are set.

    `spawns` (B, 2, K, 2) float64 are the spawn places in metres, `classes` (M,) int64 the mechs' classes. All voxels
    above `top` metres are air. With `top` 0 the columns, the blocks and the number of hazards are already set, too.
    """
    place_all(tables, state, spawns[b], classes, top, b)


@entry_point
def command_and_aim(tables: Tables, state: State, b: int, m: int, action: Any, targets: Any) -> None:
    """Convert an action (A,), cleaned in place, to a mech's command; write the target of each mount (mounts,)."""
    mech = state.mechs[b, m]
    mech_class = tables.classes[mech.mech_class]
    clean(mech, action)
    command(tables.rules[0], mech_class, mech, action)
    for mount in range(targets.shape[0]):
        w = integer(mech_class.weapon[mount])
        targets[mount] = valid_target(tables, state, b, m, tables.weapons[w]) if w >= 0 else NO_MECH
