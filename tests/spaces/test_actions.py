import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete
from gymnasium.vector.utils import batch_space
from hypothesis import given, settings
from hypothesis import strategies as st

from echelon_env import BattleEngine
from echelon_env.config.catalog import MOUNTS, WATER
from echelon_env.config.schema import ConfigError
from echelon_env.engine.state import NO_MECH
from echelon_env.layout.actions import ACTION_DIM, Action
from echelon_env.spaces.actions import (
    BLOCKS,
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
from support.fights import CONFIGS, fight, without_commands

FORMATS = ("continuous", "dict", "multi_discrete")
NAMES = [part.name for part in PARTS]


def vector(**entries):
    """An action vector of zeros except for the named entries."""
    result = np.zeros(ACTION_DIM, np.float32)
    for name, value in entries.items():
        result[Action[name.upper()]] = value
    return result


def choices(**parts):
    """A multi-discrete action, neutral except for the named parts."""
    return np.array([parts.get(name, neutral) for name, neutral in zip(NAMES, NEUTRAL_CHOICES, strict=True)])


def no_op():
    return {
        "motion": np.zeros(4, np.float32),
        "triggers": np.zeros(5, np.int8),
        "target": 0,
        "electronics": 0,
        "display": 0,
        "comm": np.zeros(8, np.float32),
    }


def test_the_blocks_are_the_entries_in_order():
    assert [entry for block in BLOCKS for entry in block.entries] == list(Action)
    assert [entry for part in PARTS for entry in part.entries] == [
        entry for entry in Action if not entry.name.startswith("COMM")
    ]


def test_spaces_of_one_mech():
    assert action_space("continuous") == Box(-1, 1, (27,), np.float32)
    assert action_space("multi_discrete") == MultiDiscrete([5, 5, 5, 5, 2, 2, 2, 2, 2, 6, 3, 3])
    space = action_space("dict")
    assert isinstance(space, Dict)
    assert list(space) == ["motion", "triggers", "target", "electronics", "display", "comm"]
    assert space["motion"] == Box(-1, 1, (4,), np.float32)
    assert space["triggers"] == MultiBinary(5)
    assert [space[name] for name in ("target", "electronics", "display")] == [Discrete(6), Discrete(3), Discrete(3)]
    assert space["comm"] == Box(-1, 1, (8,), np.float32)


def test_spaces_of_a_team():
    assert action_space("continuous", 3).shape == (81,)
    assert action_space("multi_discrete", 3) == MultiDiscrete([*MULTI_DISCRETE_SIZES] * 3)
    space = action_space("dict", 3)
    assert space["motion"].shape == (3, 4)
    assert space["triggers"] == MultiBinary((3, 5))
    assert space["target"] == MultiDiscrete([6, 6, 6])


def test_dict_actions_become_vectors():
    action = no_op()
    np.testing.assert_array_equal(read_action("dict", action), vector(display_nearest=1))
    action |= {"motion": np.array([0.25, -1, 0.5, 1], np.float32), "triggers": np.array([0, 1, 0, 0, 1], np.int8)}
    action |= {"target": np.int64(5), "electronics": 2, "display": 1, "comm": np.arange(8) / 8}
    expected = vector(throttle=0.25, strafe=-1, jet=0.5, turn=1, secondary=1, vent=1, target_4=1, eccm=1)
    expected += vector(display_dangerous=1, **{f"comm_{i}": i / 8 for i in range(8)})
    np.testing.assert_array_equal(read_action("dict", action), expected)


def test_multi_discrete_actions_become_vectors():
    np.testing.assert_array_equal(read_action("multi_discrete", NEUTRAL_CHOICES), vector(display_nearest=1))
    action = choices(throttle=4, strafe=1, jet=3, turn=0, special=1, vent=1, target=1, electronics=1, display=2)
    expected = vector(throttle=1, strafe=-0.5, jet=0.75, turn=-1, special=1, vent=1, target_0=1, ecm=1)
    np.testing.assert_array_equal(read_action("multi_discrete", action), expected + vector(display_damaged=1))


@pytest.mark.parametrize("action_format", FORMATS)
@pytest.mark.parametrize("mechs", [None, 1, 3])
def test_a_batch_is_read_as_its_agents_are(action_format, mechs):
    single = action_space(action_format, mechs)
    single.seed(5)
    agents = [single.sample() for _ in range(4)]
    if action_format == "dict":
        batch = {name: np.stack([agent[name] for agent in agents]) for name in single}
    else:
        batch = np.stack(agents)
    assert batch_space(single, 4).contains(batch)
    vectors = read_action(action_format, batch, mechs, batch=4)
    assert vectors.shape == ((4, ACTION_DIM) if mechs is None else (4, mechs, ACTION_DIM))
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, [read_action(action_format, agent, mechs) for agent in agents])


@pytest.mark.parametrize("action_format", FORMATS)
@pytest.mark.parametrize("mechs", [None, 2])
def test_callers_arrays_are_only_read(action_format, mechs):
    space = action_space(action_format, mechs)
    space.seed(1)
    action = space.sample()
    arrays = list(action.values()) if action_format == "dict" else [action]
    before = [np.array(array) for array in arrays]
    vectors = read_action(action_format, action, mechs)
    with pytest.raises(ValueError, match="read-only"):
        vectors[...] = 7
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)
        assert np.ndim(array) == 0 or array.flags.writeable


def test_numbers_out_of_bounds_are_passed_to_the_engine():
    wild = vector(throttle=np.nan, strafe=np.inf, turn=-7)
    np.testing.assert_array_equal(read_action("continuous", wild), wild)
    action = no_op() | {"motion": [np.nan, 0, 0, 3]}
    np.testing.assert_array_equal(read_action("dict", action)[:4], [np.nan, 0, 0, 3])


ERRORS = [
    ("continuous", np.zeros(26), r"red_1: expected shape \(27,\), got \(26,\)"),
    ("continuous", np.zeros(27, complex), "red_1: expected real numbers, got dtype complex128"),
    ("continuous", [[1], [1, 2]], "red_1: expected an array of numbers, got "),
    ("multi_discrete", np.zeros(12), "red_1: expected integers, got dtype float64"),
    ("multi_discrete", np.zeros(11, int), r"red_1: expected shape \(12,\), got \(11,\)"),
    ("multi_discrete", choices(target=6), r"red_1: expected 0 to 5 at \[9\], got 6"),
    ("multi_discrete", choices(throttle=-1), r"red_1: expected 0 to 4 at \[0\], got -1"),
    ("dict", np.zeros(27), r"red_1: expected a mapping with the keys \['motion', .*\], got ndarray"),
    ("dict", {"motion": np.zeros(4)}, r"red_1: expected the keys \['motion', .*\], got \['motion'\]"),
    ("dict", no_op() | {"extra": 1}, r"red_1: expected the keys .* got .*'extra'\]"),
    ("dict", no_op() | {"motion": np.zeros(5)}, r"red_1\['motion'\]: expected shape \(4,\), got \(5,\)"),
    ("dict", no_op() | {"triggers": [0, 0, 2, 0, 0]}, r"red_1\['triggers'\]: expected 0 to 1 at \[2\], got 2"),
    ("dict", no_op() | {"display": 3}, r"red_1\['display'\]: expected 0 to 2, got 3"),
    ("dict", no_op() | {"target": "1"}, r"red_1\['target'\]: expected integers, got dtype <U1"),
]


@pytest.mark.parametrize(("action_format", "action", "message"), ERRORS)
def test_wrong_actions_are_named(action_format, action, message):
    with pytest.raises(ValueError, match=message):
        read_action(action_format, action, what="red_1")


def test_an_unknown_format_is_named():
    message = r"unknown action 'multidiscrete'; did you mean 'multi_discrete'\? \(valid: continuous, dict, multi_"
    with pytest.raises(ConfigError, match=message):
        action_space("multidiscrete")
    with pytest.raises(ConfigError, match=message):
        read_action("multidiscrete", np.zeros(27))


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
    team = split_mask(masks[:, :5].reshape(2, -1))
    assert len(team) == 5 * len(PARTS)
    np.testing.assert_array_equal(team[len(PARTS)], masks[:, 1, : MULTI_DISCRETE_SIZES[0]])
    action_space("multi_discrete", 5).sample(mask=split_mask(masks[1, :5].ravel()))
    with pytest.raises(ValueError, match=rf"mask: expected a last axis of a multiple of {MASK_SIZE}, got shape \(3,\)"):
        split_mask(np.zeros(3, np.int8))


@pytest.mark.parametrize("name", CONFIGS)
@settings(max_examples=8)
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


def read_rows(wanted):
    rows = wanted.reshape(-1, len(PARTS))
    return read_action("multi_discrete", rows, batch=len(rows)).reshape(*wanted.shape[:-1], ACTION_DIM)


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


def test_parts_that_a_class_lacks_are_masked(engine):
    assert [possible(engine, HEAVY, name) for name in (*MOTION, "jet", "electronics", *MOUNTS)] == [
        *(True, True, True, False, False),
        *(True, True, True, True),
    ]
    assert [possible(engine, SCOUT, name) for name in (*MOTION, "jet", "electronics", *MOUNTS)] == [
        *(True, True, True, True, True),
        *(True, False, False, True),
    ]


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


@pytest.mark.parametrize("water", [False, True])
@pytest.mark.parametrize("hotter", [False, True])
def test_a_shut_down_mech_can_act_from_the_decision_in_which_it_may_restart(engine, water, hotter):
    voxels = np.zeros_like(engine.state.voxels[0])
    voxels[0] = WATER if water else 0
    set_voxels(engine.state, 0, voxels)
    mech, config = engine.state.mechs[0, SCOUT], engine.config
    scout, seconds = config.catalog.mech_classes[0], config.decision_seconds
    cooling = scout.heat_dissipation * config.physics.vent_factor + (30 if water else 0)
    restart = config.physics.restart_heat * scout.heat_capacity
    mech["shutdown"], mech["heat"] = 1, restart + cooling * seconds + (0.01 if hotter else -0.01)
    engine.step(read_rows(np.tile(choices(vent=1), (1, 10, 1))))
    assert mech["shutdown"] == hotter  # what may happen; now the engine
    mech["shutdown"], mech["heat"] = 1, restart + (cooling if water else cooling + 30) * seconds + hotter - 0.5
    for name in (*MOTION, "jet", "primary", "electronics", "display"):
        assert possible(engine, SCOUT, name) == (not hotter)
    assert possible(engine, SCOUT, "vent")


def test_targets_are_the_filled_rows_of_mechs_that_can_fire(engine):
    mech = engine.state.mechs[0, MEDIUM]
    mech["contacts"] = NO_MECH
    mech["contacts"][:2] = 7, 5
    at = MASK_SLICES["target"]
    assert action_masks(engine)[0, MEDIUM, at].tolist() == [1, 1, 1, 0, 0, 0]
    mech["cooldown"] = 99
    assert action_masks(engine)[0, MEDIUM, at].tolist() == [1, 0, 0, 0, 0, 0]
    mech["cooldown"][0] = 1
    mech["contacts"][2:5] = 6, 8, 9
    assert action_masks(engine)[0, MEDIUM, at].tolist() == [1, 1, 1, 1, 1, 1]


def test_dead_mechs_and_finished_battles_have_only_neutral_choices(engine):
    neutral = np.zeros(MASK_SIZE, np.int8)
    neutral[[MASK_SLICES[part.name].start + part.neutral for part in PARTS]] = 1
    engine.state.mechs["alive"][0, MEDIUM] = 0
    masks = action_masks(engine)
    np.testing.assert_array_equal(masks[0, MEDIUM], neutral)
    assert (masks[0, SCOUT] > neutral).any()
    engine.state.battles["over"] = 1
    np.testing.assert_array_equal(action_masks(engine), np.broadcast_to(neutral, (1, 10, MASK_SIZE)))
