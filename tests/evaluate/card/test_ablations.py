"""A player without one thing sees and does all but that."""

import dataclasses

import numpy as np
import pytest

from echelon_env import make_config
from echelon_env.config.schema import ConfigError
from echelon_env.evaluate import Player, baseline, named_player
from echelon_env.evaluate.card import GROUPS, ablate, ablations, named_ablations
from echelon_env.evaluate.players import BattleNoise
from echelon_env.layout.actions import ACTION_DIM, TARGET_CHOICES, Action
from echelon_env.layout.observations import CLASS_NAMES, OBSERVATION_DIM, STREAMS, Comm, Contact, Self, class_columns
from echelon_env.opponents import FunctionPolicy

SKIRMISH = make_config("skirmish")
ROWS = {each.name: each for each in ablations(SKIRMISH)}
CLASSES = ("heavy", "medium", "medium", "light", "scout")


OWN_MESSAGE = {STREAMS["comm_mask"].start, *range(STREAMS["comm"].start, STREAMS["comm"].start + len(Comm))}


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
        ("warnings", {Self.JAMMED, Self.SENSOR_QUALITY, Self.PAINTED, Self.MISSILE}),
        ("own condition", {*range(Self.ARMOUR, Self.SHUTDOWN + 1)}),
        ("messages received", entries_of("comm", "comm_mask") - OWN_MESSAGE),
    ],
)
def test_hidden_entries_are_those_of_nothing_and_no_others(name, hidden, observations):
    if name == "contacts beyond the first":
        table, mask = STREAMS["contacts"], STREAMS["contacts_mask"]
        hidden = entries_of("contacts", "contacts_mask") - {
            *range(table.start, table.start + table.row_width),
            mask.start,
        }
    observations[:, sorted(hidden)] = 0.75
    spy, given = Spy(), observations.copy()
    actions = ablated(name, spy).act(observations)
    np.testing.assert_array_equal(observations, given)  # what the engine wrote stays
    assert {*np.flatnonzero((spy.seen != given).any(axis=0)).tolist()} == hidden
    unharmed = {Self.ARMOUR: 1.0, Self.LEGS: 1.0, Self.STABILITY: 1.0, Self.SENSOR_QUALITY: 1.0 / 1.5}
    for entry in hidden:
        assert (spy.seen[:, entry] == np.float32(unharmed.get(entry, 0.0))).all(), entry
    assert (actions == 1.0).all()


@pytest.mark.parametrize(
    ("name", "silent"),
    [
        ("jets", dict.fromkeys(("scout", "light"), (Action.JET,))),
        ("electronics", {"scout": (Action.ECM, Action.ECCM)}),
        ("ECM", {"scout": (Action.ECM,)}),
        ("messages sent", dict.fromkeys(CLASS_NAMES, range(Action.COMM_0, ACTION_DIM))),
        ("laser", {"heavy": (Action.PRIMARY,), "medium": (Action.PRIMARY,), "light": (Action.SECONDARY,)}),
        ("painter", {"scout": (Action.PRIMARY,), "light": (Action.TERTIARY,)}),
        ("medium fire", {"medium": FIRE}),
        ("heavy", {"heavy": range(ACTION_DIM)}),
    ],
)
def test_silent_entries_are_zero_and_no_others(name, silent, observations):
    spy = Spy()
    actions = ablated(name, spy).act(observations)
    expected = np.ones_like(actions)
    for row, mech_class in enumerate(CLASSES):
        expected[row, [*silent.get(mech_class, ())]] = 0.0
    np.testing.assert_array_equal(actions, expected)
    np.testing.assert_array_equal(spy.seen, observations)
    assert not spy.resets


def test_without_target_choice_the_target_is_the_nearest_contact(observations):
    table, rows = STREAMS["contacts"], STREAMS["contacts_mask"].start
    distances = slice(table.start + Contact.DISTANCE, table.stop, table.row_width)
    observations[:, distances] = np.array([0.5, 0.3, 0.2, 0.4, 0.6, *[0.1] * (table.rows - TARGET_CHOICES)])
    observations[0, rows + 2] = 0.0
    targets = ablated("target choice", Spy()).act(observations)[:, Action.TARGET_0 : Action.TARGET_0 + TARGET_CHOICES]
    expected = np.eye(TARGET_CHOICES)[[1, 2, 2, 2, 2, 0]]
    expected[-1] = 0.0  # the dead see none
    np.testing.assert_array_equal(targets, expected)


def test_without_memory_every_decision_is_the_first(observations):
    spy = Spy()
    policy = ablated("memory", spy)
    for decisions in (1, 2):
        policy.act(observations)
        assert spy.resets == decisions
        assert not spy.seen[:, sorted(OWN_MESSAGE)].any()


def test_late_actions_come_a_decision_later(observations):
    policy = ablated("acting at once", Spy())
    policy.reset(np.ones(len(observations), np.bool_))
    assert not policy.act(observations).any()
    assert policy.act(observations).all()


def test_a_card_has_a_row_for_all_that_a_roster_has_and_none_for_what_it_lacks():
    streams = {entry for each in ROWS.values() for entry in each.hidden}
    assert {*range(STREAMS["self"].stop, OBSERVATION_DIM)} <= streams
    assert [each.group for each in ROWS.values()] == sorted((each.group for each in ROWS.values()), key=GROUPS.index)
    assert {*CLASS_NAMES} | {f"{name} fire" for name in CLASS_NAMES} <= ROWS.keys()
    assert {weapon.name for weapon in SKIRMISH.catalog.weapons} <= ROWS.keys()
    duel = {each.name for each in ablations(make_config("duel", banned_weapons=("painter",)))}
    assert duel >= {"laser", "autocannon", "medium fire"}
    assert not duel & {"painter", "gauss", "jets", "ECM", "squad table", "messages sent", "medium"}
    off = dict.fromkeys(("messages", "target_choice", "display", "electronics", "intel"), False)
    bare = {each.name for each in ablations(make_config("skirmish", abilities=off))}
    lost = {
        "messages received",
        "messages sent",
        "target choice",
        "display choice",
        "electronics",
        "ECM",
        "ECCM",
        "intel",
    }
    assert ROWS.keys() - bare == lost


def test_several_ablations_at_once(observations):
    (both,) = named_ablations(SKIRMISH, ["jets+laser+memory"])
    spy = Spy()
    policy = ablate(Player("spy", "scripted", lambda config, noise: spy), both).make(SKIRMISH, BattleNoise([1], [0], 5))
    scout, heavy = CLASSES.index("scout"), CLASSES.index("heavy")
    actions = policy.act(observations)
    assert (actions[scout, Action.JET], actions[heavy, Action.PRIMARY], actions[scout, Action.PRIMARY]) == (0, 0, 1)
    assert spy.resets == 1
    with pytest.raises(ConfigError, match=r"'lasers'.*'laser'"):
        named_ablations(SKIRMISH, ["intel", "jets+lasers"])
    assert [each.name for each in named_ablations(SKIRMISH, ["intel", "laser", "intel"])] == ["intel", "laser"]


def test_a_handicap_keeps_its_own_memory(observations):
    """A player without memory still acts late, and fires at its rate."""
    spy = Spy()
    player = Player("spy", "scripted", lambda config, noise: spy)
    made = named_player("expert@reaction_delay=0.25").make
    late = dataclasses.replace(player, make=dataclasses.replace(made, make=player.make))
    policy = ablate(late, ROWS["memory"]).make(SKIRMISH, BattleNoise([1], [0], 5))
    policy.reset(np.ones(len(observations), np.bool_))
    assert not policy.act(observations).any()
    assert policy.act(observations).all()


def test_bad_players_are_named_and_equal_ones_are_equal(observations):
    for make, message in (
        (lambda config, noise: print, "player 'bad': expected a policy with reset and act"),
        (lambda config, noise: FunctionPolicy(lambda seen: np.zeros(ACTION_DIM)), "actions of the player 'bad'"),
    ):
        with pytest.raises(ValueError, match=message):
            ablate(Player("bad", "scripted", make), ROWS["jets"]).make(SKIRMISH, None).act(observations)
    assert ablate(baseline("expert"), ROWS["jets"]) == ablate(baseline("expert"), ROWS["jets"])
