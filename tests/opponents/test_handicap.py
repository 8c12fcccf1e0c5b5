import math

import numpy as np
import pytest
from scipy import stats

from echelon_env import make_config, opponents
from echelon_env.config.catalog import DEFAULT_CATALOG, MOUNTS
from echelon_env.layout.actions import ACTION_DIM, Action
from echelon_env.layout.observations import CONTACT_ROWS, OBSERVATION_DIM, STREAMS, Contact, Self
from echelon_env.opponents import Handicap
from opponents.contests import recorded, think

CONFIG = make_config("skirmish")
SECONDS = CONFIG.decision_seconds
TRIGGERS = slice(Action.PRIMARY, Action.PRIMARY + len(MOUNTS))
CONTACTS = STREAMS["contacts"]


class Counter:
    """Acts by the number of decisions since each row's battle started, and stores its observations."""

    def __init__(self, trigger: float = 0.5) -> None:
        self.count = np.zeros(0, np.int64)
        self.trigger = trigger
        self.shown = None

    def reset(self, mask):
        self.count = np.where(mask, 0, np.resize(self.count, len(mask)))

    def act(self, observations):
        if len(self.count) != len(observations):
            self.count = np.zeros(len(observations), np.int64)
        self.shown = observations
        self.count += 1
        actions = np.zeros((len(observations), ACTION_DIM), np.float32)
        actions[:, Action.THROTTLE] = self.count / 1000
        actions[:, TRIGGERS] = self.trigger
        return actions


def throttles(player, decisions, rows=1):
    seen = np.zeros((rows, OBSERVATION_DIM), np.float32)
    acted = np.array([player.act(seen)[:, Action.THROTTLE] for _ in range(decisions)])
    return np.rint(acted * 1000).astype(int).T.tolist()


def observation(rows=1, contacts=CONTACT_ROWS, mech_class=Self.IS_MEDIUM):
    """Mechs that see enemies in all directions."""
    seen = np.zeros((rows, OBSERVATION_DIM), np.float32)
    seen[:, Self.ALIVE] = 1.0
    seen[:, mech_class] = 1.0
    seen[:, Self.POSITION_X] = np.linspace(-1, 1, rows)
    table = seen[:, CONTACTS.part].reshape(rows, CONTACT_ROWS, len(Contact))
    angles = np.arange(contacts) * 0.5
    table[:, :contacts] = np.random.default_rng(0).random((contacts, len(Contact)))
    table[:, :contacts, Contact.DIRECTION_FORWARD] = np.cos(angles)
    table[:, :contacts, Contact.DIRECTION_LEFT] = np.sin(angles)
    seen[:, CONTACTS.part] = table.reshape(rows, -1)
    seen[:, STREAMS["contacts_mask"].start :][:, :contacts] = 1.0
    return seen


def test_without_a_handicap_actions_pass_unchanged():
    inner = Counter(trigger=math.nan)
    player = Handicap(inner, CONFIG)
    seen = observation(3)
    actions = player.act(seen)
    assert inner.shown is seen
    assert actions.tobytes() == Counter(trigger=math.nan).act(seen).tobytes()
    level = opponents.make("expert", 1, CONFIG)
    same = think(Handicap(opponents.make("expert", 1, CONFIG), CONFIG), recorded())
    assert same.tobytes() == think(level, recorded()).tobytes()


class TestReactionDelay:
    def test_actions_are_delayed_and_zero_before_the_first(self):
        assert throttles(Handicap(Counter(), CONFIG, reaction_delay=3 * SECONDS), 6) == [[0, 0, 0, 1, 2, 3]]

    @pytest.mark.parametrize(("seconds", "decisions"), [(0.12, 0), (0.125, 1), (0.3, 1), (0.375, 2), (10.0, 40)])
    def test_it_is_rounded_to_whole_decisions(self, seconds, decisions):
        assert throttles(Handicap(Counter(), CONFIG, reaction_delay=seconds), decisions + 1) == [[0] * decisions + [1]]

    def test_a_row_that_restarts_does_nothing_until_its_own_first_decision_arrives(self):
        player = Handicap(Counter(), CONFIG, reaction_delay=2 * SECONDS)
        assert throttles(player, 4, rows=2) == [[0, 0, 1, 2]] * 2
        player.reset(np.array([True, False]))
        assert throttles(player, 4, rows=2) == [[0, 0, 1, 2], [3, 4, 5, 6]]

    def test_it_can_change_during_a_battle(self):
        player = Handicap(Counter(), CONFIG, reaction_delay=SECONDS)
        assert throttles(player, 4) == [[0, 1, 2, 3]]
        player.reaction_delay = 3 * SECONDS
        assert throttles(player, 5) == [[4, 4, 4, 5, 6]]  # repeats its last action
        player.reaction_delay = 0.0
        assert throttles(player, 2) == [[10, 11]]
        player.reaction_delay = 2 * SECONDS
        assert throttles(player, 4) == [[0, 0, 12, 13]]


class TestAimError:
    def angles(self, inner, rows):
        table = inner.shown[:, CONTACTS.part].reshape(rows, CONTACT_ROWS, len(Contact))
        forward, left = table[..., Contact.DIRECTION_FORWARD], table[..., Contact.DIRECTION_LEFT]
        np.testing.assert_allclose(np.hypot(forward, left), 1.0, atol=1e-6)
        assert max(np.abs(forward).max(), np.abs(left).max()) <= 1.0
        return np.angle((forward + 1j * left) * np.exp(-0.5j * np.arange(CONTACT_ROWS)))

    def test_it_is_the_standard_deviation_of_one_normal_angle_for_a_row_and_second(self):
        inner, error = Counter(), 0.5
        player = Handicap(inner, CONFIG, seed=5, aim_error=error)
        seen, drawn = observation(500), []
        for _ in range(3):  # seconds
            within = []
            for _ in range(round(1 / SECONDS)):
                player.act(seen)
                angles = self.angles(inner, 500)
                np.testing.assert_allclose(angles, angles[:, :1].repeat(CONTACT_ROWS, axis=1), atol=1e-6)
                within.append(angles[:, 0])
            np.testing.assert_array_equal(within[0], within[-1])
            drawn.append(within[0])
        assert stats.kstest(np.ravel(drawn) / error, "norm").pvalue > 0.001
        assert abs(np.corrcoef(drawn)[np.triu_indices(3, 1)]).max() < 0.15

    @pytest.mark.parametrize("repeat", [4, 10])
    def test_it_is_drawn_again_every_second_of_battle_time(self, repeat):
        inner = Counter()
        player = Handicap(inner, make_config("skirmish", decision_repeat=repeat), aim_error=0.5)
        drawn = []
        for _ in range(4 * 20 // repeat):
            player.act(observation())
            drawn.append(self.angles(inner, 1)[0, 0])
        assert np.flatnonzero(np.diff(drawn)).tolist() == [20 // repeat * second - 1 for second in (1, 2, 3)]


WEAPONS = {
    (mech.name, mount): next(
        weapon for weapon in DEFAULT_CATALOG.weapons if weapon.name == getattr(mech, mount)
    ).cooldown
    for mech in DEFAULT_CATALOG.mech_classes
    for mount in MOUNTS
    if getattr(mech, mount)
}


def fire(mech, mount, fire_rate, seed=0, seconds=100.0, repeat=5):
    """Number of shots of a weapon in some time with its trigger always pulled."""
    player = Handicap(Counter(), make_config("skirmish", decision_repeat=repeat), seed, fire_rate=fire_rate)
    seen = observation(mech_class=Self[f"IS_{mech.upper()}"])
    place, dt = MOUNTS.index(mount), CONFIG.dt
    ready, wait, shots = 0, round(WEAPONS[mech, mount] / dt), 0
    for first in range(0, round(seconds / dt), repeat):
        seen[0, Self.COOLDOWN_PRIMARY + place] = max(0, ready - first) / wait
        if player.act(seen)[0, Action.PRIMARY + place] > 0.0:
            for tick in range(first, first + repeat):
                if tick >= ready:
                    shots, ready = shots + 1, tick + wait
    return shots


class TestFireRate:
    @pytest.mark.parametrize(
        ("mech", "mount", "repeat"), [("light", "primary", 5), ("medium", "tertiary", 2), ("heavy", "secondary", 5)]
    )
    def test_every_weapon_fires_slower_by_the_rate(self, mech, mount, repeat):
        full = fire(mech, mount, 1.0, repeat=repeat)
        shares = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9]
        rates = [fire(mech, mount, share, repeat=repeat) / full for share in shares]
        np.testing.assert_allclose(rates, shares, atol=0.06)
        assert (np.diff([*rates, 1.0]) > 0).all()

    def test_only_triggers_are_held(self):
        inner = Counter()
        actions = think(Handicap(inner, CONFIG, fire_rate=0.0), observation(3)[None].repeat(5, axis=0))
        plain = think(Counter(), observation(3)[None].repeat(5, axis=0))
        assert not actions[..., TRIGGERS].any()
        others = [entry for entry in range(ACTION_DIM) if entry not in range(TRIGGERS.start, TRIGGERS.stop)]
        np.testing.assert_array_equal(actions[..., others], plain[..., others])


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("reaction_delay", 11, "'reaction_delay': expected a number from 0 to 10.0 s, got 11"),
        ("reaction_delay", math.nan, "got nan"),
        ("aim_error", math.inf, r"\'aim_error\': expected a number from 0 to 3\.14159.* radians, got inf"),
        ("aim_error", "0.1", "got '0.1'"),
        ("fire_rate", 1.1, r"\'fire_rate\': expected a number from 0 to 1 \(a share\), got 1\.1"),
        ("fire_rate", True, "got True"),
        ("fire_rate", [0.5], r"got \[0\.5\]"),
    ],
)
def test_impossible_handicaps_are_refused_and_change_nothing(name, value, message):
    player = Handicap(Counter(), CONFIG, reaction_delay=1, aim_error=np.float32(0.5), fire_rate=0.5)
    with pytest.raises(ValueError, match=message):
        setattr(player, name, value)
    assert (player.reaction_delay, player.aim_error, player.fire_rate) == (1.0, 0.5, 0.5)
    with pytest.raises(ValueError, match=message):
        Handicap(Counter(), CONFIG, **{name: value})


def test_non_policies_are_refused():
    for policy in ("novice", Counter, None, lambda observations: observations):
        with pytest.raises(TypeError, match="policy: expected an object with reset and act, got"):
            Handicap(policy, CONFIG)
    with pytest.raises(ValueError, match="seed: expected an integer in"):
        Handicap(Counter(), CONFIG, seed=-1)
    wrong = Handicap(opponents.FunctionPolicy(lambda rows: rows[:, :3]), CONFIG)
    with pytest.raises(ValueError, match=r"actions of FunctionPolicy.*: expected shape \(2, 27\), got \(2, 3\)"):
        wrong.act(observation(2))
