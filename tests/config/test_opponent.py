import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echelon_env import ConfigError
from echelon_env.config import (
    Curriculum,
    HandicapConfig,
    HandicapSchedule,
    Opponent,
    Opponents,
    Schedule,
    make_curriculum,
)
from echelon_env.config.opponent import MAX_AIM_ERROR, MAX_DELAY, SELF
from echelon_env.config.schema import build, to_plain
from echelon_env.config.skill import LEVELS

PATHS = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=30).filter(
    lambda path: "=" not in path and not path.endswith("@auto") and not path.endswith("@")
)
HANDICAPS = st.builds(
    HandicapConfig,
    fire_rate=st.floats(0, 1),
    reaction_delay=st.floats(0, MAX_DELAY),
    aim_error=st.floats(0, MAX_AIM_ERROR),
)
SHARES, SHAPES = st.floats(0, 1), st.sampled_from(["linear", "cosine"])
RAMPS = st.builds(
    HandicapSchedule,
    fire_rate=st.builds(Schedule, SHARES, SHARES, SHAPES),
    reaction_delay=st.builds(Schedule.constant, SHARES) | st.builds(Schedule, SHARES, SHARES, SHAPES),
    aim_error=st.builds(Schedule.constant, SHARES),
)
NAMES = st.sampled_from([*LEVELS, SELF]) | PATHS.map(lambda path: f"policy:{path}")
OPPONENTS = (
    st.builds(Opponent, NAMES, HANDICAPS)
    | st.builds(lambda name: Opponent(name, auto=True), NAMES)
    | st.builds(lambda name, schedule: Opponent(name, schedule=schedule), NAMES, RAMPS)
)
WEIGHTS = st.dictionaries(OPPONENTS.map(str), st.floats(0.001, 1e6), min_size=1, max_size=6)


@given(OPPONENTS)
def test_the_text_of_an_opponent_means_that_opponent(opponent):
    assert Opponent.parse(str(opponent)) == opponent


@given(WEIGHTS)
def test_the_text_and_the_plain_data_of_opponents_mean_those_opponents(weights):
    opponents = Opponents.parse(weights)
    assert Opponents.parse(str(opponents)) == opponents
    assert Opponents.parse(json.loads(json.dumps(opponents.plain(), sort_keys=True))) == opponents


def test_the_order_and_weights_of_zero_do_not_count():
    given = Opponents.parse({"self": 1, "expert": 2, "novice@auto": 3, "trivial": 0})
    assert given.names == ("novice@auto", "expert", "self")
    assert Opponents.parse({"expert": 7, "novice": 0}).plain() == "expert"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("novise", "opponent: unknown opponent 'novise'; did you mean 'novice'"),
        ("novise", r"\(valid: champion, .*trivial, veteran; in training also self\)"),
        (str(Path(__file__).parent), "did you mean 'policy:/"),
        (3, "unknown opponent 3"),
        ("policy:", "expected policy:PATH with the path"),
        ("expert@ato", "expected 'auto' or key=value"),
        ("expert@fire_rat=1", "unknown handicap 'fire_rat'; did you mean 'fire_rate'"),
        ("expert@fire_rate=linear:0.5", "'fire_rate': expected a number, 'linear:START:END'.*, got 'linear:0.5'"),
        ("expert@fire_rate=linear:0:2", "fire_rate.*expected a number from 0 to 1 .*, got 2.0"),
        ("expert@reaction_delay=cosine:11:0", "reaction_delay.*expected a number from 0 to 10.0 s, got 11.0"),
        ("expert@fire_rate=linear:0:1,fire_rate=1", "fire_rate is given twice"),
        ({}, "weights: expected a mapping of opponents to numbers"),
        ({"expert": -1}, "weights: expected a finite number of at least 0 for 'expert', got -1"),
        ({"expert": 0}, "weights: expected a finite sum above 0"),
        ({"expert@fire_rate=0.5": 1, "expert@fire_rate=0.50": 1}, "'expert@fire_rate=0.5' is named twice"),
        ("{expert@auto = 1}", "expected a TOML table of weights.*with quotes"),
        ("{a=" * 3000, "expected a TOML table of weights"),
        (f"{{novice = {'1' * 5000}}}", "expected a TOML table of weights"),
    ],
)
def test_what_is_no_opponent_is_refused(value, message):
    with pytest.raises(ConfigError, match=message):
        Opponents.parse(value)


def test_a_handicap_follows_its_schedules():
    ramp = Opponent.parse("policy:runs/x@reaction_delay=linear:1:0,fire_rate=cosine:0.250:1,aim_error=0.5")
    assert str(ramp) == "policy:runs/x@fire_rate=cosine:0.25:1,reaction_delay=linear:1:0,aim_error=0.5"
    assert ramp.path == "runs/x"
    assert ramp.schedule.at(1.0) == HandicapConfig(fire_rate=0.25, reaction_delay=1.0, aim_error=0.5)
    assert ramp.schedule.at(0.75).reaction_delay == 0.75
    assert ramp.schedule.at(0.0) == HandicapConfig(aim_error=0.5)
    with pytest.raises(ConfigError, match="got numbers only"):
        HandicapSchedule(fire_rate=Schedule.constant(0.5))
    with pytest.raises(ConfigError, match=r"novice: expected 'auto', a schedule .*, got several"):
        Opponent("novice", auto=True, schedule=ramp.schedule)


@pytest.mark.parametrize("name", ["self", "novice@auto", "novice@fire_rate=linear:0.25:1"])
def test_outside_training_there_is_no_self_and_no_auto(name):
    with pytest.raises(ConfigError, match="for training only"):
        Opponents.parse({name: 1, "expert": 1}).check_playable()


def test_stages_of_a_curriculum_name_their_opponents():
    curriculum = make_curriculum(["duel-open", "duel"], opponents=["novice", {"expert": 1, "novice": 2}])
    assert curriculum.opponents[1].names == ("novice", "expert")
    assert build(Curriculum, json.loads(json.dumps(to_plain(curriculum))), "") == curriculum
    with pytest.raises(ConfigError, match="'opponents': expected one for each of 2 scenarios, got 1"):
        make_curriculum(["duel-open", "duel"], opponents=["novice"])
