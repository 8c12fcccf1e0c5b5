import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echelon_env import ConfigError, make_config
from echelon_env.config.curriculum import Curriculum, Move, Progress, ProgressState, make_curriculum
from echelon_env.config.schema import build, to_plain

NAMES = ("duel-open", "duel-cover", "duel")
DUELS = make_curriculum(NAMES)
RULES = st.tuples(st.integers(1, 12), st.integers(-1, 12), st.integers(0, 12)).filter(lambda rule: rule[1] < rule[2])
"""Windows, and thresholds as numbers of won battles, limited by the window."""


def rule_of(window: int, demote: int, promote: int) -> Curriculum:
    low, high = min(demote, window - 1), min(promote, window)
    return make_curriculum(NAMES, window=window, demote=max(low / window, -1.0), promote=max(high, low + 1) / window)


@given(RULES, st.lists(st.booleans(), max_size=150))
def test_the_rule_equals_an_integer_model(rule, outcomes):
    """The model keeps all outcomes of the stage and compares integers."""
    curriculum = rule_of(*rule)
    window = curriculum.window
    most_to_demote, least_to_promote = round(curriculum.demote * window), round(curriculum.promote * window)
    progress = Progress(curriculum)
    stage, since = 0, []
    for won in outcomes:
        since.append(won)
        wins = sum(since[-window:])
        expected = None
        if len(since) >= window and wins >= least_to_promote and stage < 2:
            expected = Move(stage + 1, wins / window, len(since))
        elif len(since) >= window and wins <= most_to_demote and stage > 0 and curriculum.demote >= 0:
            expected = Move(stage - 1, wins / window, len(since))
        assert progress.record(won) == expected
        if expected is not None:
            stage, since = expected.stage, []
        assert (progress.stage, progress.battles) == (stage, len(since))
        kept = since[-window:]
        assert progress.win_rate == (sum(kept) / len(kept) if kept else None)


@pytest.mark.parametrize(("wins", "stage"), [(69, 1), (70, 2), (31, 1), (30, 0)])
def test_thresholds_are_inclusive(wins, stage):
    progress = Progress(DUELS, ProgressState(1))
    for number in range(100):
        assert progress.stage == 1
        progress.record(number < wins)
    assert progress.stage == stage


@given(RULES, st.lists(st.booleans(), max_size=60), st.lists(st.booleans(), max_size=30))
def test_progress_continues_from_its_state(rule, before, after):
    first = Progress(rule_of(*rule))
    for won in before:
        first.record(won)
    state = build(ProgressState, json.loads(json.dumps(to_plain(first.state))), "")
    second = Progress(first.curriculum, state)
    assert [first.record(won) for won in after] == [second.record(won) for won in after]
    assert first.state == second.state


@pytest.mark.parametrize(
    "state",
    [
        (3, 2, (True, False)), (-1, 2, (True, False)), (True, 2, (True, False)), (1, 2, (1, 0)), (1, 3, (True, False)),
        (1, -2, (True, False)), (1, 101, (True,) * 101),
    ],
)  # fmt: skip
def test_a_state_that_does_not_fit_is_refused(state):
    with pytest.raises(ConfigError, match=r"progress.*: expected .*, got"):
        Progress(DUELS, ProgressState(*state))
    assert Progress(DUELS, ProgressState(1, 2, (True, False))).state == ProgressState(1, 2, (True, False))


@pytest.mark.parametrize("won", [1, -1, 0.5, None, "yes"])
def test_an_outcome_is_not_accepted_as_a_win(won):
    with pytest.raises(TypeError, match="expected a boolean"):
        Progress(DUELS).record(won)


def test_accepted_formats_of_a_curriculum(tmp_path):
    file = tmp_path / "lesson.toml"
    file.write_text('description = "mine"\nblue = ["light"]\nred = ["light"]\n')
    config = make_config("duel", max_steps=9)
    curriculum = make_curriculum(["duel-open", file, str(file), config, config.to_dict()], promote=1)
    assert [s.name for s in curriculum.scenarios] == ["duel-open", "lesson", "lesson", "stage 3", "stage 4"]
    assert curriculum.scenarios[3].config == curriculum.scenarios[4].config == config
    assert curriculum.promote == 1.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: make_curriculum([]), "at least one scenario"),
        (lambda: make_curriculum("duel"), "a sequence of scenarios, got 'duel'"),
        (lambda: make_curriculum(["duel", "skirmsh"]), "did you mean 'skirmish'"),
        (lambda: make_curriculum(NAMES, promot=1), "did you mean 'promote'"),
        (lambda: make_curriculum(NAMES, window=0), "window"),
        (lambda: make_curriculum(NAMES, promote=0.3), "demote: expected a win rate below promote"),
        (lambda: Curriculum(scenarios=("duel",)), r"scenarios\[0\]"),
        (lambda: make_curriculum({"scenarios": NAMES}), "a sequence of scenarios, got {"),
    ],
)
def test_impossible_curricula(make, message):
    with pytest.raises(ConfigError, match=message):
        make()
