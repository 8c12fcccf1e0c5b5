import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echelon_env import BattleEngine
from echelon_env.config.catalog import MOUNTS
from echelon_env.engine.state import NO_MECH
from echelon_env.layout.actions import ACTION_DIM, Action
from echelon_env.spaces import MULTI_DISCRETE_SIZES, PARTS, action_masks, read_action, split_mask
from echelon_env.spaces.explain import explain_action
from oracles.configs import ALL_OFF, small_config
from oracles.situations import set_voxels
from support.fights import CONFIGS, fight, without_commands

HEAVY, MEDIUM, SCOUT, ENEMY, OTHER = 0, 1, 4, 6, 7
NAMES = [f"{team}_{i}" for team in ("blue", "red") for i in range(5)]

ENTRIES = {
    "motion": [Action.THROTTLE, Action.STRAFE],
    "jet": [Action.JET],
    "turn": [Action.TURN],
    **{mount: [Action[mount.upper()]] for mount in MOUNTS},
    "vent": [Action.VENT],
    "target": list(Action)[Action.TARGET_0 : Action.TARGET_4 + 1],
    "electronics": [Action.ECM, Action.ECCM],
    "display": list(Action)[Action.DISPLAY_NEAREST : Action.DISPLAY_DAMAGED + 1],
    "comm": list(Action)[Action.COMM_0 : Action.COMM_7 + 1],
}
"""The parts of an explanation, in order, with their entries of the action."""


def vector(**entries):
    result = np.zeros(ACTION_DIM, np.float32)
    for name, value in entries.items():
        result[Action[name.upper()]] = value
    return result


@pytest.fixture(scope="module")
def bare():
    engine = BattleEngine(small_config(), 1)
    engine.reset([1])
    set_voxels(engine.state, 0, np.zeros_like(engine.state.voxels[0]))
    return engine, engine.snapshot()


@pytest.fixture
def engine(bare):
    """Empty ground: a heavy, a medium and a scout face two red mediums in their contact rows 0 and 2."""
    engine, start = bare
    engine.restore(start)
    mechs = engine.state.mechs[0]
    for row, x, y in ((HEAVY, 30, 26), (MEDIUM, 30, 30), (SCOUT, 30, 36), (ENEMY, 36, 30), (OTHER, 37, 33)):
        mechs["x"][row], mechs["y"][row] = x, y
        mechs["yaw"][row], mechs["facing_x"][row], mechs["facing_y"][row] = 0, 1, 0
        mechs["contacts"][row], mechs["target"][row] = NO_MECH, ENEMY
        mechs["contacts"][row][[0, 2]] = ENEMY, OTHER
    return engine


def explain(engine, mech, **entries):
    """The parts of an explanation by name."""
    parts = {part.name: part for part in explain_action(engine, 0, mech, vector(**entries), NAMES)}
    assert list(parts)[: len(ENTRIES)] == list(ENTRIES)
    return parts


def test_motion_states_the_resulting_speed(engine):
    mech, start = engine.state.mechs[0, SCOUT], engine.snapshot()
    for wear, entries, effect in (
        ({}, {"throttle": 0.5}, "walks forward at 3.50 m/s"),
        ({}, {"throttle": -1, "strafe": 1}, "walks backward and left at 7.00 m/s"),
        ({}, {"strafe": -9}, "walks right at 7.00 m/s"),
        ({}, {"throttle": 1, "jet": 0.5}, "walks forward at 11.20 m/s (its jets add 60%)"),
        ({"legs": 0}, {"throttle": 1}, "walks forward at 2.80 m/s (its legs leave 40%)"),
        ({"fallen": 4}, {"throttle": 1}, "walks forward at 7.00 m/s, once it stands in 0.2 s"),
    ):
        engine.restore(start)
        for name, value in wear.items():
            mech[name] = value
        assert explain(engine, SCOUT, **entries)["motion"].effect == effect
        engine.step(np.where(np.arange(10)[:, None] == SCOUT, vector(**entries), 0)[None])
        assert f"{np.hypot(mech['vx'], mech['vy']):.2f} m/s" in effect


@pytest.mark.parametrize(
    ("mech", "entries", "name", "effect"),
    [
        (SCOUT, {"jet": 0.5}, "jet", "thrust of 9.00 m/s2 against gravity's 9.81, 10 heat/s"),
        (HEAVY, {"jet": 1}, "jet", "refused: no jump jets"),
        (SCOUT, {"turn": 0.5}, "turn", "turns counter-clockwise at 0.90 rad/s"),
        (SCOUT, {"vent": 1}, "vent", "sheds 26 heat/s instead of 13, holds fire"),
        (SCOUT, {"ecm": 1, "eccm": 0.1}, "electronics", "radiates ECCM, which overrides ECM (2 heat/s)"),
        (HEAVY, {"ecm": 1}, "electronics", "refused: it carries none"),
        (MEDIUM, {"target_0": 0.5, "target_2": 1}, "target", "targets red_2, 7.6 m away"),
        (MEDIUM, {"target_1": 1}, "target", "refused: the row is empty"),
        (SCOUT, {"display_dangerous": 1}, "display", "sorts the next contact table by danger"),
        (MEDIUM, {"comm_1": 0.25}, "comm", "heard by blue_0, blue_2, blue_3, blue_4"),
    ],
)
def test_every_part_states_its_effect(engine, mech, entries, name, effect):
    assert str(explain(engine, mech, **entries)[name]).endswith(f" -> {effect}")


def test_a_mount_names_the_target_that_it_would_take(engine):
    part = explain(engine, MEDIUM, primary=1)["primary"]
    assert (part.requested, part.effect) == ("fire laser", "fires laser at red_1, 6.0 m away")
    assert explain(engine, MEDIUM, primary=1, target_2=1)["primary"].effect == "fires laser at red_2, 7.6 m away"
    assert explain(engine, MEDIUM, primary=1, target_1=1)["primary"].effect == "fires laser at red_1, 6.0 m away"
    engine.state.mechs["cooldown"][0, MEDIUM] = 3
    part = explain(engine, MEDIUM, primary=1)["primary"]
    assert part.effect == "fires laser at red_1, 6.0 m away, ready in 0.15 s"
    engine.state.mechs["facing_x"][0, MEDIUM] = -1
    assert explain(engine, MEDIUM, primary=1)["primary"].refused == "no valid target now"
    engine.state.mechs["facing_x"][0, HEAVY] = -1
    assert explain(engine, HEAVY, tertiary=1)["tertiary"].effect == "fires gauss level and straight ahead"


DOWN = {"shutdown": 1, "heat": 130}
ASLEEP = "shut down by heat, for longer than the decision"


@pytest.mark.parametrize(
    ("mech", "state", "name", "entries", "reason"),
    [
        (SCOUT, DOWN, "electronics", {"ecm": 1}, ASLEEP),
        (SCOUT, DOWN, "display", {"display_damaged": 1}, ASLEEP),
        (SCOUT, DOWN, "comm", {"comm_1": 1}, "shut down: it sends nothing"),
        (SCOUT, DOWN, "vent", {"vent": 1}, None),
        (SCOUT, {}, "secondary", {"secondary": 1}, "no weapon on this mount"),
        (MEDIUM, {}, "primary", {"primary": 1, "vent": 1}, "it holds fire while venting"),
        (MEDIUM, {"cooldown": 6}, "primary", {"primary": 1}, "cooling down for 0.3 s yet"),
        (MEDIUM, {"charges": 0}, "special", {"special": 1}, "out of charges"),
        (MEDIUM, {"charges": 0}, "primary", {"primary": 1}, None),
        (MEDIUM, {"fallen": 6}, "primary", {"primary": 1}, "on the ground for 0.3 s yet"),
        (MEDIUM, {"fallen": 6} | DOWN, "primary", {"primary": 1}, ASLEEP),
    ],
)
def test_a_part_says_why_it_is_refused(engine, mech, state, name, entries, reason):
    for field, value in state.items():
        engine.state.mechs[field][0, mech] = value
    part = explain(engine, mech, **entries)[name]
    assert part.refused == reason
    assert (part.effect == "nothing") == (reason is not None)


def test_entries_that_are_not_finite_are_counted(engine):
    parts = explain(engine, SCOUT, throttle=np.nan, comm_7=-np.inf, turn=1)
    assert str(parts["entries"]) == "entries: throttle nan, comm_7 -inf -> refused: not finite"
    assert str(parts["motion"]) == "motion: throttle nan, strafe 0 -> nothing"
    assert "entries" not in explain(engine, SCOUT, turn=1)


EVERYTHING = np.ones(ACTION_DIM, np.float32)


@pytest.mark.parametrize("why", ["dead", "the battle is over"])
def test_dead_mechs_and_finished_battles_refuse_every_part(engine, why):
    if why == "dead":
        engine.state.mechs["alive"][0, SCOUT] = 0
    else:
        engine.state.battles["over"] = 1
    action = EVERYTHING.copy()
    action[Action.DISPLAY_NEAREST] = 0
    assert [part.refused for part in explain_action(engine, 0, SCOUT, action, NAMES)] == [why] * len(ENTRIES)


def test_nothing_is_changed(engine):
    before, action = engine.snapshot(), EVERYTHING.copy()
    action[3] = np.nan
    copy = action.copy()
    explain_action(engine, 0, MEDIUM, action, NAMES)
    np.testing.assert_array_equal(action, copy)
    for name, array in engine.snapshot().items():
        assert array.tobytes() == before[name].tobytes()


def test_bad_input_is_named(engine):
    for error, message, arguments in (
        (IndexError, "battle: expected 0 to 0, got 1", (1, 0, EVERYTHING, NAMES)),
        (IndexError, "mech: expected 0 to 9, got -1", (0, -1, EVERYTHING, NAMES)),
        (ValueError, "names: expected 10, got 9", (0, 0, EVERYTHING, NAMES[1:])),
    ):
        with pytest.raises(error, match=message):
            explain_action(engine, *arguments)


def part_of(choice_part):
    return "motion" if choice_part.name in ("throttle", "strafe") else choice_part.name


@pytest.mark.parametrize("name", ["odd", "disabled"])
@settings(max_examples=2)
@given(seed=st.integers(0, 2**32))
def test_masked_choices_are_refused(name, seed):
    engine = BattleEngine(CONFIGS[name], 1)
    names = [""] * engine.num_mechs
    for rng in fight(engine, seed):
        for mech, mask in enumerate(action_masks(engine)[0]):
            choices = rng.integers(0, MULTI_DISCRETE_SIZES)
            parts = explain_action(engine, 0, mech, read_action("multi_discrete", choices), names)
            refused = {part.name for part in parts if part.refused is not None}
            for part, allowed, choice in zip(PARTS, split_mask(mask), choices, strict=True):
                assert allowed[choice] or part_of(part) in refused


@pytest.mark.parametrize("name", CONFIGS)
@settings(max_examples=2)
@given(seed=st.integers(0, 2**32))
def test_refused_parts_have_no_effect(name, seed):
    engine = BattleEngine(CONFIGS[name], 1)
    names = [""] * engine.num_mechs
    for rng in fight(engine, seed):
        wanted = rng.uniform(-1, 1, (engine.num_mechs, ACTION_DIM)).astype(np.float32)
        possible = wanted.copy()
        for mech in range(engine.num_mechs):
            for part in explain_action(engine, 0, mech, wanted[mech], names):
                if part.refused not in (None, "no valid target now"):  # there may be one before the decision ends
                    possible[mech, ENTRIES[part.name]] = 0
        assert (possible != wanted).any()
        start = engine.snapshot()
        outcomes = []
        for actions in (wanted, possible):
            engine.step(actions[None])
            outcomes.append(without_commands(engine, "message"))
            engine.restore(start)
        assert outcomes[0] == outcomes[1]


def test_what_is_switched_off_is_refused_with_the_setting():
    engine = BattleEngine(small_config(abilities=ALL_OFF), 1)
    engine.reset([1])
    engine.state.mechs["contacts"][0, SCOUT, 0] = ENEMY
    entries = {"target_0": 1.0, "ecm": 1.0, "display_damaged": 1.0, "comm_3": 0.5}
    parts = explain(engine, SCOUT, **entries)
    fields = {"target": "target_choice", "electronics": "electronics", "display": "display", "comm": "messages"}
    for name, field in fields.items():
        assert parts[name].refused == f"abilities.{field} is off in this battle"
        assert parts[name].effect == "nothing"
    assert parts["target"].requested == "contact row 0"
    assert parts["display"].requested == "sort contacts by damage"
    assert all(part.refused is None for part in explain(engine, SCOUT).values())
    engine.state.mechs["alive"][0, SCOUT] = 0
    assert {explain(engine, SCOUT, **entries)[name].refused for name in fields} == {"dead"}
