import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echelon_env import BattleEngine
from echelon_env.config.catalog import MOUNTS
from echelon_env.engine.state import NO_MECH
from echelon_env.layout.actions import Action
from echelon_env.spaces import (
    DISCRETE_CHOICES,
    MASK_SIZE,
    MASK_SLICES,
    MULTI_DISCRETE_SIZES,
    NEUTRAL_CHOICES,
    PARTS,
    action_masks,
    action_space,
    read_action,
    split_mask,
)
from oracles.configs import small_config
from oracles.situations import set_voxels
from support.choices import NAMES, choices, read_rows
from support.fights import CONFIGS, fight, without_commands


def test_masks_split_into_the_parts_that_samplers_take():
    engine = BattleEngine("skirmish", 2)
    engine.reset([1, 2])
    masks = action_masks(engine)
    assert masks.shape == (2, 10, MASK_SIZE)
    assert masks.dtype == np.int8
    space = action_space("multi_discrete")
    assert tuple(part.shape for part in split_mask(masks[0, 0])) == tuple((size,) for size in MULTI_DISCRETE_SIZES)
    for seed in range(20):
        space.seed(seed)
        chosen = space.sample(mask=split_mask(masks[0, 0]))
        assert chosen[NAMES.index("jet")] == chosen[NAMES.index("target")] == 0  # a heavy that sees no mech
    team = split_mask(masks[:, :5].reshape(2, -1), mechs=5)
    assert len(team) == 5 * len(PARTS)
    np.testing.assert_array_equal(team[len(PARTS)], masks[:, 1, : MULTI_DISCRETE_SIZES[0]])
    action_space("multi_discrete", 5).sample(mask=split_mask(masks[1, :5].ravel(), mechs=5))
    with pytest.raises(ValueError, match=rf"mask: expected a last axis of {MASK_SIZE}, got shape \(3,\)"):
        split_mask(np.zeros(3, np.int8))


@pytest.mark.parametrize("name", CONFIGS)
@settings(max_examples=2)
@given(seed=st.integers(0, 2**32))
def test_masked_choices_have_no_effect(name, seed):
    engine = BattleEngine(CONFIGS[name], 2)
    forbidden = np.zeros(len(PARTS), int)
    for rng in fight(engine, seed):
        masks = action_masks(engine)
        wanted = rng.integers(0, MULTI_DISCRETE_SIZES, (*masks.shape[:2], len(PARTS)))
        allowed = masks_of(masks, wanted)
        assert masks_of(masks, np.broadcast_to(NEUTRAL_CHOICES, wanted.shape)).all()
        forbidden += (~allowed).sum(axis=(0, 1))
        start = engine.snapshot()
        engine.step(read_rows(wanted))
        after = without_commands(engine)
        engine.restore(start)
        engine.step(read_rows(np.where(allowed, wanted, NEUTRAL_CHOICES)))
        assert without_commands(engine) == after
        engine.restore(start)
    assert (forbidden > 0).all()


def masks_of(masks, wanted):
    """(..., parts) bool: the mask entries of some choices."""
    picked = [np.take_along_axis(part, wanted[..., [i]], -1) for i, part in enumerate(split_mask(masks))]
    return np.concatenate(picked, -1) != 0


@pytest.mark.long
def test_every_choice_that_masks_allow_has_an_effect_in_some_state():
    missing = {(part.name, choice) for part in PARTS for choice in range(len(part.values)) if choice != part.neutral}
    engine = BattleEngine(CONFIGS["odd"], 1)
    for seed in range(20):
        for rng in fight(engine, seed):
            mech = int(rng.integers(engine.num_mechs))
            allowed = split_mask(action_masks(engine)[0, mech])
            base = np.tile(NEUTRAL_CHOICES, (1, engine.num_mechs, 1))
            base[0, mech, NAMES.index("primary") : NAMES.index("vent")] = 1
            start = engine.snapshot()
            for name, choice in sorted(missing):
                part = NAMES.index(name)
                if allowed[part][choice]:
                    outcomes = []
                    for option in (NEUTRAL_CHOICES[part], choice):
                        actions = base.copy()
                        actions[0, mech, part] = option
                        engine.step(read_rows(actions))
                        outcomes.append(without_commands(engine))
                        engine.restore(start)
                    if outcomes[0] != outcomes[1]:
                        missing.remove((name, choice))
    assert not missing


@pytest.fixture
def engine():
    """Five against five on empty ground, all able to act."""
    engine = BattleEngine(small_config(), 1)
    engine.reset([1])
    set_voxels(engine.state, 0, np.zeros_like(engine.state.voxels[0]))
    return engine


def possible(engine, mech, name):
    """Whether the mask allows a mech's part all choices (True) or only the neutral one (False)."""
    part = action_masks(engine)[0, mech, MASK_SLICES[name]]
    others = np.delete(part, PARTS[NAMES.index(name)].neutral)
    assert (others == others[0]).all()
    return bool(others[0])


HEAVY, MEDIUM, SCOUT = 0, 1, 4
MOTION = ("throttle", "strafe", "turn")


def test_a_class_without_speed_cannot_move():
    engine = BattleEngine(CONFIGS["lame"], 1)
    engine.reset([1])
    assert [possible(engine, SCOUT, name) for name in (*MOTION, "jet")] == [False, False, False, True]
    assert [possible(engine, MEDIUM, name) for name in MOTION] == [True, True, True]
    engine.state.mechs["legs"][0, MEDIUM] = 0
    assert [possible(engine, MEDIUM, name) for name in MOTION] == [False, False, True]


def test_a_weapon_is_possible_from_the_decision_in_which_it_cools_down(engine):
    mech, ticks = engine.state.mechs[0, SCOUT], engine.config.decision_repeat
    start = engine.snapshot()
    for cooldown, fires in ((ticks, True), (ticks + 1, False)):
        engine.restore(start)
        mech["cooldown"][MOUNTS.index("special")] = cooldown
        assert possible(engine, SCOUT, "special") == fires
        engine.step(read_rows(np.tile(choices(special=1), (1, 10, 1))))
        assert engine.shots[0, SCOUT].sum() == fires
    mech["cooldown"][:] = 0
    mech["charges"][MOUNTS.index("special")] = 0
    assert not possible(engine, SCOUT, "special")


def test_a_fallen_mech_can_act_from_the_decision_in_which_it_stands_up(engine):
    mech, ticks = engine.state.mechs[0, SCOUT], engine.config.decision_repeat
    start = engine.snapshot()
    for fallen, stands in ((ticks, True), (ticks + 1, False)):
        engine.restore(start)
        mech["fallen"], mech["stability"], before = fallen, 0, mech["yaw"]
        for name in (*MOTION, "jet", "primary"):
            assert possible(engine, SCOUT, name) == stands
        for name in ("vent", "electronics", "display"):
            assert possible(engine, SCOUT, name)
        engine.step(read_rows(np.tile(choices(turn=4), (1, 10, 1))))
        assert (mech["yaw"] != before) == stands


def test_targets_are_the_filled_rows_also_of_mechs_that_cannot_fire(engine):
    mech = engine.state.mechs[0, MEDIUM]
    mech["contacts"] = NO_MECH
    mech["contacts"][:2] = 7, 5
    at = MASK_SLICES["target"]
    assert action_masks(engine)[0, MEDIUM, at].tolist() == [1, 1, 1, 0, 0, 0]
    mech["cooldown"], mech["fallen"] = 99, 99
    mech["contacts"][2:5] = 6, 8, 9
    assert action_masks(engine)[0, MEDIUM, at].tolist() == [1, 1, 1, 1, 1, 1]


def test_dead_mechs_and_finished_battles_have_only_neutral_choices(engine):
    neutral = np.zeros(MASK_SIZE, np.int8)
    neutral[[MASK_SLICES[part.name].start + part.neutral for part in PARTS]] = 1
    engine.state.mechs["alive"][0, MEDIUM] = 0
    engine.state.mechs["contacts"][0, [MEDIUM, SCOUT], 0] = 7
    masks = action_masks(engine)
    np.testing.assert_array_equal(masks[0, MEDIUM], neutral)
    assert (masks[0, SCOUT] > neutral).any()
    engine.state.battles["over"] = 1
    np.testing.assert_array_equal(action_masks(engine), np.broadcast_to(neutral, (1, 10, MASK_SIZE)))


ENTRIES = [entry.name.lower() for entry in Action]


@pytest.mark.parametrize("name", ["odd", "lame"])
@settings(max_examples=2)
@given(seed=st.integers(0, 2**32))
def test_a_masked_discrete_choice_does_what_a_simpler_one_does(name, seed):
    engine = BattleEngine(CONFIGS[name], 2)
    table = read_action("discrete", np.arange(len(DISCRETE_CHOICES)), batch=len(DISCRETE_CHOICES))
    simpler = {vector.tobytes(): choice for choice, vector in enumerate(table)}
    for rng in fight(engine, seed):
        masks = action_masks(engine, "discrete")
        assert masks.shape == (2, engine.num_mechs, len(table))
        assert masks[..., 0].all()
        parts = dict(zip(NAMES, split_mask(action_masks(engine)), strict=True))
        wanted = rng.integers(0, len(table), masks.shape[:2])
        instead = wanted.copy()
        for place in np.argwhere(np.take_along_axis(masks, wanted[..., None], -1)[..., 0] == 0):
            mech = tuple(place)
            vector = table[wanted[mech]].copy()
            # all choices of a part but the neutral one are masked together
            can = {Action[part.upper()]: bool(allowed[mech][-1]) for part, allowed in parts.items() if part in ENTRIES}
            can |= dict.fromkeys((Action.ECM, Action.ECCM), bool(parts["electronics"][mech][-1]))
            volley = (Action.PRIMARY, Action.SECONDARY, Action.TERTIARY)
            can |= dict.fromkeys(volley, any(can[weapon] for weapon in volley))
            vector[[entry for entry, possible in can.items() if not possible]] = 0.0
            instead[mech] = simpler.get(vector.tobytes(), wanted[mech])  # jets of a mech that cannot walk: no choice
            assert instead[mech] != wanted[mech] or (can[Action.JET] and not can[Action.THROTTLE])
        start = engine.snapshot()
        engine.step(table[wanted])
        after = without_commands(engine)
        engine.restore(start)
        engine.step(table[instead])
        assert without_commands(engine) == after
        engine.restore(start)


def test_discrete_choices_need_all_their_parts_and_one_of_their_weapons(engine):
    names = [*DISCRETE_CHOICES]

    def possible_choices(mech):
        return {name for name, allowed in zip(names, action_masks(engine, "discrete")[0, mech], strict=True) if allowed}

    heavy = {name for name in names if "jump" not in name and "ecm" not in name and "eccm" not in name}
    assert possible_choices(HEAVY) == heavy
    assert possible_choices(SCOUT) == set(names)
    engine.state.mechs["cooldown"][0, HEAVY, :2] = 99
    assert possible_choices(HEAVY) == heavy
    engine.state.mechs["cooldown"][0, HEAVY, 2] = 99
    assert possible_choices(HEAVY) == {name for name in heavy if "fire" not in name}
    engine.state.mechs["alive"][0, MEDIUM] = 0
    assert possible_choices(MEDIUM) == {"stand"}
    space = action_space("discrete")
    space.seed(1)
    drawn = {
        names[space.sample(mask=split_mask(action_masks(engine, "discrete")[0, HEAVY], "discrete"))] for _ in range(300)
    }
    assert drawn <= possible_choices(HEAVY) and len(drawn) > 20
