"""Abilities that are switched off: what has no effect then, and what mechs observe."""

from dataclasses import fields

import numpy as np
import pytest

from echelon_env import BattleEngine
from echelon_env.config.battle import PACK, AbilityConfig
from echelon_env.layout.actions import BLOCKS
from echelon_env.layout.observations import COMM_ROWS, Contact, Self
from echelon_env.spaces.describe import describe_observation
from oracles.configs import odd_config, small_config
from oracles.situations import arranged_engine, brawling_actions
from oracles.world import load
from rules.arena import Arena, of_kind

EAST, WEST = 0, 180
SWITCHES = {"target_choice": "target", "electronics": "electronics", "display": "display", "messages": "comm"}
"""Abilities with the blocks of an action that they give an effect."""

ABILITIES = [field.name for field in fields(AbilityConfig)]
BATTLES = 4


def without(*abilities):
    return {"abilities": dict.fromkeys(abilities, False)}


def test_all_abilities_are_on_by_default_and_name_their_blocks():
    assert all(getattr(AbilityConfig(), name) for name in ABILITIES)
    assert {*SWITCHES, "intel"} == {*ABILITIES}
    assert AbilityConfig().blocks_off == frozenset()
    assert AbilityConfig(intel=False).blocks_off == frozenset()
    for ability, block in SWITCHES.items():
        assert AbilityConfig(**{ability: False}).blocks_off == {block}


def play_twice(config, block, decisions):
    """Whether battles are equal in every byte if the entries of a block have other values in the second playing."""
    part = next(each.part for each in BLOCKS if each.name == block)
    engines = [arranged_engine(config, BATTLES, seed=5) for _ in range(2)]
    rng = np.random.default_rng(8)
    for _ in range(decisions):
        actions = np.stack([brawling_actions(load(engines[0].state, b, config), rng) for b in range(BATTLES)])
        actions[~np.isfinite(actions)] = 0.0
        changed = actions.copy()
        changed[..., part] = rng.uniform(-1.5, 1.5, changed[..., part].shape)
        for engine, each in zip(engines, (actions, changed), strict=True):
            engine.step(each)
        first, second = (engine.snapshot() for engine in engines)
        if any(first[name].tobytes() != second[name].tobytes() for name in first):
            return False
    return True


@pytest.mark.parametrize("make", [small_config, odd_config])
@pytest.mark.parametrize("ability", SWITCHES)
def test_entries_that_are_switched_off_change_nothing_at_all(ability, make):
    assert play_twice(make(**without(ability)), SWITCHES[ability], 12)
    assert not play_twice(make(), SWITCHES[ability], 12), "they have effects while the ability is on"


@pytest.mark.parametrize("make", [small_config, odd_config])
@pytest.mark.parametrize("ability", ABILITIES)
def test_what_is_switched_off_is_never_observed(ability, make):
    """And the entries that are always 0 are those that are described so."""
    empty = np.array([not entry.filled for entry in describe_observation(None, AbilityConfig(**{ability: False}))])
    assert empty.any() == (ability != "target_choice")  # without it a mech still has a target
    seen = {}
    for on in (True, False):
        config = make(abilities={ability: on})
        engine, rng = arranged_engine(config, BATTLES, seed=3), np.random.default_rng(4)
        seen[on] = np.zeros(len(empty), bool)
        for _ in range(15):
            engine.step(np.stack([brawling_actions(load(engine.state, b, config), rng) for b in range(BATTLES)]))
            seen[on] |= (engine.observations != 0).any(axis=(0, 1))
    assert not (seen[False] & empty).any()
    assert (seen[True] & empty).any() == empty.any()


@pytest.mark.parametrize("ability", ABILITIES)
def test_the_first_observation_has_nothing_of_it(ability):
    engine = BattleEngine("skirmish", abilities={ability: False}, observability="full")
    observations = engine.reset([1])
    empty = [entry.index for entry in describe_observation(None, engine.config.abilities) if not entry.filled]
    assert not observations[..., empty].any()


def pack(**overrides):
    places = {f"{i} {name}": (8 + 5 * i, 8) for i, name in enumerate(PACK)}
    return Arena(places, {"medium": (60, 60)}, **overrides)


def test_without_messages_the_comm_table_is_empty_and_the_own_row_too():
    arena = pack(**without("messages"))
    for name in arena.names:
        arena.order(name, comm_0=1, comm_7=-0.5)
    arena.run(2)
    for name in arena.names:
        assert not arena.observed(name, "comm").any()
        assert not arena.observed(name, "comm_mask").any()
    heard = pack()
    heard.run()
    assert heard.observed("0 heavy", "comm_mask").sum() == COMM_ROWS


def duel(**overrides):
    """A medium, an enemy light 5 m ahead, and an enemy medium 7 m ahead."""
    return Arena({"medium": (10, 32, EAST)}, {"light": (15, 32, WEST), "other medium": (17, 34, WEST)}, **overrides)


@pytest.mark.parametrize("on", [True, False])
def test_without_a_choice_the_target_is_the_nearest_visible_enemy(on):
    arena = duel(abilities={"target_choice": on})
    arena.run()
    arena.order("medium", target="other medium", primary=1)
    (hit,) = of_kind(arena.run(), "hit")
    assert hit.target == ("other medium" if on else "light")
    assert arena.observed("medium", "self")[Self.HAS_TARGET] == 1
    assert arena.observed("medium", "contacts")[:2, Contact.IS_TARGET].tolist() == [not on, on]


@pytest.mark.parametrize("on", [True, False])
def test_without_the_display_contacts_are_sorted_by_distance(on):
    arena = duel(abilities={"display": on})
    arena["other medium"].armour = 1.0
    arena.order("medium", display_damaged=1)
    arena.run()
    assert arena.contacts("medium") == (["other medium", "light"] if on else ["light", "other medium"])
    flags = arena.observed("medium", "self")[Self.BY_DISTANCE : Self.BY_DAMAGE + 1]
    assert flags.tolist() == ([0, 0, 1] if on else [1, 0, 0])


@pytest.mark.parametrize("on", [True, False])
def test_without_electronics_no_mech_radiates(on):
    arena = Arena({"medium": (10, 30, EAST), "scout": (10, 50)}, {"red scout": (20, 30)}, abilities={"electronics": on})
    arena.order("red scout", ecm=1)
    arena.order("scout", eccm=1)
    arena.run()
    assert (arena["medium"].jam > 0) == (arena["medium"].quality != 1.0) == (arena["red scout"].heat > 0) == on
    assert arena.observed("medium", "contacts")[0, Contact.RADIATING] == on
    own = arena.observed("scout", "self")
    assert own[Self.HAS_ELECTRONICS] == own[Self.ECCM] == on


def test_without_electronics_paint_and_sensors_work():
    arena = Arena({"medium": (10, 30, EAST)}, {"heavy": (60, 60)}, **without("electronics"))
    arena.smoke(30, 40, 2)
    arena.paint("heavy", by="medium")
    arena.run()
    assert arena.contacts("medium") == ["heavy"]


def divided(**overrides):
    """A scout that sees a heavy, and behind a wall a medium of its pack that does not."""
    arena = Arena(
        {"scout": (10, 10, EAST), "medium": (10, 50, EAST)}, {"heavy": (40, 10, WEST), "light": (62, 62)}, **overrides
    )
    arena.fill("concrete", y=(30, 31))
    arena.fill("concrete", x=(56, 57))
    return arena


def test_without_intel_a_mech_knows_its_own_contacts_only():
    arena = divided(**without("intel"))
    arena.run()
    assert arena.contacts("scout") == ["heavy"]
    assert arena.contacts("medium") == arena.intel("medium") == []
    arena.put("heavy", 60, 20)
    arena.run(3)
    for name in ("scout", "medium"):
        assert arena.contacts(name) == arena.intel(name) == []
        assert not arena.observed(name, "intel").any()
        assert not arena.observed(name, "intel_mask").any()
    assert not arena.state.sightings["known"].any()


def test_without_intel_a_pack_still_sees_what_it_has_painted():
    arena = divided(**without("intel"))
    arena.paint("heavy", by="scout")
    arena.run()
    assert arena.contacts("medium") == ["heavy"]
