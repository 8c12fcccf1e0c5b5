"""A player without one thing sees and does all but that."""

import numpy as np
import pytest

from echelon_env import make_config
from echelon_env.evaluate import Player
from echelon_env.evaluate.card import GROUPS, ablate, ablations
from echelon_env.evaluate.players import BattleNoise
from echelon_env.layout.actions import ACTION_DIM, TARGET_CHOICES, Action
from echelon_env.layout.observations import CLASS_NAMES, OBSERVATION_DIM, STREAMS, Self, class_columns

SKIRMISH = make_config("skirmish")
ROWS = {each.name: each for each in ablations(SKIRMISH)}
CLASSES = ("heavy", "medium", "medium", "light", "scout")


class Spy:
    """Remembers what it sees; all of its actions are 1."""

    def __init__(self):
        self.seen, self.resets = None, 0

    def reset(self, mask):
        self.resets += bool(mask.all())

    def act(self, observations):
        self.seen = observations
        return np.ones((len(observations), ACTION_DIM), np.float32)


@pytest.fixture
def observations():
    """Ones, with the mechs' classes and a dead mech at the end."""
    made = np.ones((len(CLASSES) + 1, OBSERVATION_DIM), np.float32)
    made[:, class_columns(Self)] = 0.0
    for row, name in enumerate(CLASSES):
        made[row, Self[f"IS_{name.upper()}"]] = 1.0
    made[-1] = 0.0
    return made


def ablated(name, spy):
    player = ablate(Player("spy", "scripted", lambda config, noise: spy), ROWS[name])
    assert player.name == f"spy without {name}"
    return player.make(SKIRMISH, BattleNoise([1], [0], len(CLASSES)))


def entries_of(*streams):
    return {entry for name in streams for entry in range(STREAMS[name].start, STREAMS[name].stop)}


FIRE = (Action.PRIMARY, Action.SECONDARY, Action.TERTIARY, Action.SPECIAL)


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("contacts", entries_of("contacts", "contacts_mask")),
        ("contacts beyond the first", None),
        ("intel", entries_of("intel", "intel_mask")),
        ("objective", entries_of("objective")),
        ("sound", {Self.SOUND_AHEAD, Self.SOUND_LEFT, Self.SOUND_BEHIND, Self.SOUND_RIGHT}),
        ("warnings", {Self.JAMMED, Self.SENSOR_QUALITY, Self.PAINTED, Self.MISSILE}),
    ],
)
def test_hidden_entries_are_zero_and_no_others(name, hidden, observations):
    if name == "contacts beyond the first":
        table, mask = STREAMS["contacts"], STREAMS["contacts_mask"]
        hidden = entries_of("contacts", "contacts_mask") - {
            *range(table.start, table.start + table.row_width),
            mask.start,
        }
    spy, given = Spy(), observations.copy()
    actions = ablated(name, spy).act(observations)
    np.testing.assert_array_equal(observations, given)  # what the engine wrote stays
    assert {*np.flatnonzero((spy.seen != given).any(axis=0)).tolist()} == hidden - {
        entry for entry in hidden if not given[:, entry].any()
    }
    assert not spy.seen[:, sorted(hidden)].any()
    assert (actions == 1.0).all()


@pytest.mark.parametrize(
    ("name", "silent"),
    [
        ("target choice", dict.fromkeys(CLASS_NAMES, range(Action.TARGET_0, Action.TARGET_0 + TARGET_CHOICES))),
        ("jets", dict.fromkeys(("scout", "light"), (Action.JET,))),
        ("electronics", {"scout": (Action.ECM, Action.ECCM)}),
        ("ECM", {"scout": (Action.ECM,)}),
        ("messages sent", dict.fromkeys(CLASS_NAMES, range(Action.COMM_0, ACTION_DIM))),
        ("laser", {"heavy": (Action.PRIMARY,), "medium": (Action.PRIMARY,), "light": (Action.SECONDARY,)}),
        ("painter", {"scout": (Action.PRIMARY,), "light": (Action.TERTIARY,), "medium": (Action.SECONDARY,)}),
        ("medium's fire", {"medium": FIRE}),
        ("heavy, parked", {"heavy": range(ACTION_DIM)}),
    ],
)
def test_silent_entries_are_zero_and_no_others(name, silent, observations):
    spy = Spy()
    actions = ablated(name, spy).act(observations)
    expected = np.ones_like(actions)
    for row, mech_class in enumerate(CLASSES):
        expected[row, [*silent.get(mech_class, ())]] = 0.0
    np.testing.assert_array_equal(actions[:-1], expected[:-1])
    np.testing.assert_array_equal(spy.seen, observations)
    assert not spy.resets


def test_without_memory_every_decision_is_the_first(observations):
    spy = Spy()
    policy = ablated("memory", spy)
    for decisions in (1, 2):
        policy.act(observations)
        assert spy.resets == decisions


def test_late_actions_come_a_decision_later(observations):
    policy = ablated("actions on time", Spy())
    policy.reset(np.ones(len(observations), np.bool_))
    assert not policy.act(observations).any()
    assert policy.act(observations).all()


def test_a_card_has_a_row_for_all_that_a_roster_has_and_none_for_what_it_lacks():
    streams = {entry for each in ROWS.values() for entry in each.hidden}
    assert {*range(STREAMS["self"].stop, OBSERVATION_DIM)} <= streams
    assert [each.group for each in ROWS.values()] == sorted((each.group for each in ROWS.values()), key=GROUPS.index)
    assert {f"{name}, parked" for name in CLASS_NAMES} <= ROWS.keys()
    assert {weapon.name for weapon in SKIRMISH.catalog.weapons} <= ROWS.keys()
    duel = {each.name for each in ablations(make_config("duel", banned_weapons=("painter",)))}
    assert duel >= {"laser", "autocannon", "medium's fire"}
    assert not duel & {"painter", "gauss", "jets", "ECM", "squad table", "messages sent", "medium, parked"}
