import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete
from gymnasium.vector.utils import batch_space

from echelon_env.config.schema import ConfigError
from echelon_env.layout.actions import ACTION_DIM, Action
from echelon_env.spaces import (
    DISCRETE_CHOICES,
    MULTI_DISCRETE_SIZES,
    NEUTRAL_CHOICES,
    action_space,
    read_action,
)
from support.choices import choices

FORMATS = ("continuous", "dict", "multi_discrete", "discrete")


def vector(**entries):
    """An action vector of zeros except for the named entries."""
    result = np.zeros(ACTION_DIM, np.float32)
    for name, value in entries.items():
        result[Action[name.upper()]] = value
    return result


def no_op():
    return {
        "motion": np.zeros(4, np.float32),
        "triggers": np.zeros(5, np.int8),
        "target": 0,
        "electronics": 0,
        "display": 0,
        "comm": np.zeros(8, np.float32),
    }


def test_spaces_of_one_mech():
    assert action_space("continuous") == Box(-1, 1, (27,), np.float32)
    assert action_space("multi_discrete") == MultiDiscrete([7, 7, 7, 7, 2, 2, 2, 2, 2, 6, 3, 3])
    assert action_space("discrete") == Discrete(67)
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
    assert action_space("discrete", 3) == MultiDiscrete([67] * 3)
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
    action = choices(throttle=6, strafe=1, jet=3, turn=0, special=1, vent=1, target=1, electronics=1, display=2)
    expected = vector(throttle=1, strafe=-2 / 3, jet=0.5, turn=-1, special=1, vent=1, target_0=1, ecm=1)
    np.testing.assert_array_equal(read_action("multi_discrete", action), expected + vector(display_damaged=1))


def test_discrete_actions_become_vectors():
    names = [*DISCRETE_CHOICES]
    expected = {
        "stand": vector(),
        "jump forward, turn right, fire": vector(throttle=1, jet=1, turn=-1, primary=1, secondary=1, tertiary=1),
        "left": vector(strafe=1),
        "backward, special": vector(throttle=-1, special=1),
        "forward, vent": vector(throttle=1, vent=1),
        "eccm": vector(eccm=1),
    }
    read = read_action("discrete", [names.index(name) for name in expected], batch=len(expected))
    np.testing.assert_array_equal(read, np.stack([*expected.values()]))
    assert names[0] == "stand"
    np.testing.assert_array_equal(read_action("discrete", [1, 66], mechs=2)[1], expected["eccm"])
    assert len(np.unique(read_action("discrete", np.arange(67), batch=67), axis=0)) == 67


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


def test_numbers_out_of_bounds_are_passed_to_the_engine():
    wild = vector(throttle=np.nan, strafe=np.inf, turn=-7)
    np.testing.assert_array_equal(read_action("continuous", wild), wild)
    action = no_op() | {"motion": [np.nan, 0, 0, 3]}
    np.testing.assert_array_equal(read_action("dict", action)[:4], [np.nan, 0, 0, 3])


ERRORS = [
    ("continuous", np.zeros(26), r"red_1: expected shape \(27,\), got \(26,\)"),
    ("continuous", np.zeros(27, complex), "red_1: expected real numbers, got dtype complex128"),
    ("multi_discrete", np.zeros(12), "red_1: expected integers, got dtype float64"),
    ("multi_discrete", np.zeros(11, int), r"red_1: expected shape \(12,\), got \(11,\)"),
    ("multi_discrete", choices(target=6), r"red_1: expected 0 to 5 at \[9\], got 6"),
    ("discrete", 67, "red_1: expected 0 to 66, got 67"),
    ("dict", np.zeros(27), r"red_1: expected a mapping with the keys \['motion', .*\], got ndarray"),
    ("dict", {"motion": np.zeros(4)}, r"red_1: expected the keys \['motion', .*\], got \['motion'\]"),
    ("dict", no_op() | {"extra": 1}, r"red_1: expected the keys .* got .*'extra'\]"),
    ("dict", no_op() | {"motion": np.zeros(5)}, r"red_1\['motion'\]: expected shape \(4,\), got \(5,\)"),
    ("dict", no_op() | {"triggers": [0, 0, 2, 0, 0]}, r"red_1\['triggers'\]: expected 0 to 1 at \[2\], got 2"),
    ("dict", no_op() | {"display": 3}, r"red_1\['display'\]: expected 0 to 2, got 3"),
]


@pytest.mark.parametrize(("action_format", "action", "message"), ERRORS)
def test_wrong_actions_are_named(action_format, action, message):
    with pytest.raises(ValueError, match=message):
        read_action(action_format, action, what="red_1")


def test_an_unknown_format_is_named():
    message = r"unknown action 'multidiscrete'; did you mean 'multi_discrete'\? \(valid: continuous, dict, "
    with pytest.raises(ConfigError, match=message):
        action_space("multidiscrete")
