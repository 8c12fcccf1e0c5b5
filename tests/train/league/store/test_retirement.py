import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echelon_train.league.ratings.payoffs import payoffs
from echelon_train.league.store.fsck import fsck
from echelon_train.league.store.promotion import promote
from echelon_train.league.store.registry import League
from echelon_train.league.store.retirement import ANSWERS, Verdict, rare_counters, retire_weak, retirements
from train.league.leagues import played, saved

MAPS = 20
WON, LOST = (1, 1) * MAPS, (-1, -1) * MAPS
MOSTLY, RARELY = (1, 1, 1, -1) * (MAPS // 2), (-1, -1, 1, -1) * (MAPS // 2)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    return [saved(folder / str(seed), seed) for seed in range(6)]


@pytest.fixture
def league(tmp_path, checkpoints):
    """Of policies that do not learn any more, and the novice."""
    league = League.create(tmp_path / "league")
    for checkpoint, name in zip(checkpoints, ("strong", "middle", "weak", "poor"), strict=False):
        league.add_checkpoint(checkpoint, "past", name)
    return league


class Play:
    """Plays and rates matches; each has a number and so maps of its own."""

    def __init__(self, league):
        self.league, self.number = league, 0

    def match(self, first, second, outcomes):
        self.number += 1
        self.league.record(played(first, second, outcomes, self.number))

    def period(self, *matches):
        for each in matches:
            self.match(*each)
        self.league.close_period()


@pytest.fixture
def play(league):
    return Play(league)


STRONG, WEAK, POOR = ("strong", "novice", WON), ("weak", "novice", LOST), ("poor", "novice", LOST)


def crown(league, name):
    promote(league, name, play=lambda first, second: played(first, second, WON, 900))


def names(verdicts):
    return [verdict.member for verdict in verdicts if verdict.retires]


def test_who_was_far_behind_in_each_of_the_periods_retires(league, play):
    play.period(STRONG, WEAK)
    crown(league, "strong")
    for _ in range(3):
        assert retirements(league, margin=500, periods=4) == []
        play.period(STRONG, WEAK)
    (verdict,) = retirements(league, margin=500, periods=4)
    gaps = [
        ratings["strong"].rating - ratings["weak"].rating - ratings["weak"].deviation
        for ratings in league.history().values()
    ]
    assert verdict == Verdict("weak", pytest.approx(min(gaps)), ())
    assert retirements(league, margin=min(gaps) - 1, periods=4) == [verdict]
    assert retirements(league, margin=min(gaps) + 1, periods=4) == []


def test_one_good_period_is_enough_to_stay(league, play):
    play.period(STRONG, WEAK)
    play.period(STRONG, WEAK, *[("weak", "novice", WON)] * 10)
    play.period(STRONG, *[WEAK] * 20)
    margin = 900
    assert names(retirements(league, margin=margin, periods=1)) == ["weak"]
    assert names(retirements(league, margin=margin, periods=2)) == []
    play.period(STRONG, WEAK)
    assert names(retirements(league, margin=margin, periods=2)) == ["weak"]
    assert names(retirements(league, margin=margin, periods=3)) == []


def test_who_joined_within_the_periods_stays(league, play, checkpoints):
    play.period(STRONG)
    league.add_checkpoint(checkpoints[4], "past", "late")
    for _ in range(3):
        play.period(STRONG, ("late", "novice", LOST))
    assert names(retirements(league, margin=200, periods=3)) == ["late"]
    assert names(retirements(league, margin=200, periods=4)) == []


def test_newcomers_stay(league, play):
    for _ in range(2):
        play.period(STRONG, ("weak", "novice", LOST[:-2]))
    league.close_period()
    play.match("poor", "novice", LOST[:-4])
    league.close_period()
    assert [each.games for each in reversed(league.standings())][:2] == [2 * (MAPS - 1), MAPS - 2]
    assert names(retirements(league, margin=100, periods=1)) == ["weak"]


def test_scripted_members_and_those_that_learn_stay(league, play, checkpoints):
    league.add_scripted("trivial")
    league.add_checkpoint(checkpoints[4], "main", "learner")
    lost = [(name, "strong", LOST) for name in ("novice", "trivial", "learner", "weak")]
    play.period(*lost)
    assert names(retirements(league, margin=100, periods=1)) == ["weak"]
    league.add_checkpoint(checkpoints[5], "main", "heir", "learner")
    assert set(names(retirements(league, margin=100, periods=1))) == {"weak", "learner"}, "it has gone on as another"


def test_who_has_retired_is_no_matter_any_more(league, play):
    play.period(STRONG, WEAK)
    league.retire("strong")
    league.retire("weak")
    assert retirements(league, margin=0, periods=1) == []


def test_the_champion_is_the_measure_though_others_are_better(league, play):
    """And it is safe, as are those near it; once another reigns, it is not, but the past stays as it was."""
    results = STRONG, ("weak", "strong", LOST), ("middle", "strong", LOST), ("middle", "weak", (1, -1) * MAPS)
    play.period(*results)
    assert set(names(retirements(league, margin=100, periods=1))) == {"weak", "middle"}
    crown(league, "middle")
    assert names(retirements(league, margin=100, periods=1)) == []
    play.period(*results)
    crown(league, "strong")
    assert set(names(retirements(league, margin=100, periods=1))) == {"weak", "middle"}
    assert names(retirements(league, margin=100, periods=2)) == []
    play.period(*results)
    assert set(names(retirements(league, margin=100, periods=2))) == {"weak", "middle"}


def test_somebody_who_may_be_good_is_not_the_measure(league, play):
    """One that has won the only two maps that it played, before there is a champion."""
    play.period(("poor", "novice", (1,) * 4), *[("middle", "novice", MOSTLY), ("weak", "novice", RARELY)] * 5)
    ratings = league.ratings()
    gap = ratings["middle"].rating - ratings["weak"].rating - ratings["weak"].deviation
    assert ratings["poor"].rating > ratings["middle"].rating + 50
    assert names(retirements(league, margin=gap - 20, periods=1)) == ["weak"]
    assert names(retirements(league, margin=gap + 20, periods=1)) == []


def test_a_league_without_as_many_periods(league, play):
    assert retirements(league, margin=0, periods=1) == []
    play.period(STRONG, WEAK)
    assert retirements(league, margin=0, periods=2) == []


@pytest.mark.parametrize(
    ("number", "value"),
    [
        ("margin", -1.0),
        ("margin", math.nan),
        ("periods", 0),
        ("periods", 1.5),
        ("periods", True),
        ("rare_counter", 0.49),
        ("rare_counter", 1.01),
        ("rare_counter", math.nan),
    ],
)
def test_impossible_numbers(league, number, value):
    for act in (retirements, retire_weak):
        with pytest.raises(ValueError, match=f"{number.replace('_', ' ')}: expected .*got"):
            act(league, **{number: value})


@pytest.fixture
def cyclic(tmp_path, checkpoints):
    """Nobody but the counter beats the strong one, and everybody else beats the counter: drawn battle by battle."""
    league = League.create(tmp_path / "cyclic")
    for checkpoint, name in zip(checkpoints, ("strong", "middle", "weak", "counter"), strict=False):
        league.add_checkpoint(checkpoint, "past", name)
    play, rng = Play(league), np.random.default_rng(1)
    strengths = {"strong": 4.0, "middle": 2.0, "novice": 1.0, "weak": -2.5, "counter": -2.5}
    for _ in range(3):
        for first in strengths:
            for second in list(strengths)[list(strengths).index(first) + 1 :]:
                win = 1 / (1 + math.exp(strengths[second] - strengths[first]))
                if (first, second) == ("strong", "counter"):
                    win = 0.25
                play.match(first, second, tuple(np.where(rng.random(2 * MAPS) < win, 1, -1).tolist()))
        league.close_period()
    return league


def answered(league):
    """Whether anybody who is active beats the strong one."""
    scores = league.pair_scores()
    active = [each.name for each in league.members() if each.state == "active"]
    return any(np.mean(scores["strong", name]) < 0.45 for name in active if ("strong", name) in scores)


def test_the_only_answer_to_a_strong_member_stays(cyclic):
    crown(cyclic, "strong")
    before = cyclic.matches(), cyclic.ratings()
    verdicts = retire_weak(cyclic, margin=200, periods=3)
    assert [(each.member, each.counters) for each in verdicts] == [("weak", ()), ("counter", ("strong",))]
    states = {each.name: each.state for each in cyclic.members()}
    assert (states["counter"], states["weak"], states["middle"]) == ("active", "retired", "active")
    assert answered(cyclic)
    assert (cyclic.matches(), cyclic.ratings()) == before and fsck(cyclic.path) == []
    assert [each.member for each in retire_weak(cyclic, margin=200, periods=3)] == ["counter"]


def test_without_that_rule_the_answer_would_be_lost(cyclic):
    crown(cyclic, "strong")
    assert answered(cyclic)
    assert set(names(retire_weak(cyclic, margin=200, periods=3, rare_counter=1.0))) == {"counter", "weak"}
    assert not answered(cyclic)


def matrix(members, **wins):
    """Payoffs of members named by a letter each; ``ab=15``: a has won 15 of 20 games against b."""
    scores = {tuple(pair): [1.0] * won + [0.0] * (20 - won) for pair, won in wins.items()}
    return payoffs(list(members), scores)


@pytest.mark.parametrize(
    ("given_payoffs", "weak", "expected"),
    [
        (matrix("sw", ws=16), "w", {"w": ("s",)}),
        (matrix("sw", sw=4), "w", {"w": ("s",)}),
        (matrix("sw", ws=13), "w", {"w": ()}),
        (matrix("sw"), "w", {"w": ()}),
        (matrix("stw", ws=16, wt=20), "w", {"w": ("s", "t")}),
        (matrix("saw", sa=2, ws=16), "w", {"w": ("s",)}),
        (matrix("sabw", sa=2, sb=2, ws=16), "w", {"w": ()}),
        (matrix("sabw", sa=2, sb=9, ws=16), "w", {"w": ("s",)}),
        (matrix("suvw", su=2, sv=2, sw=2), "uvw", {"u": (), "v": ("s",), "w": ("s",)}),
        (matrix("suvw", su=2, sv=2, sw=2), "wvu", {"w": (), "v": ("s",), "u": ("s",)}),
        (matrix("svw", vw=20), "vw", {"v": (), "w": ()}),
    ],
)
def test_rare_counters(given_payoffs, weak, expected):
    assert rare_counters(given_payoffs, list(weak)) == expected


def test_how_much_an_answer_scores():
    given_payoffs = matrix("sw", ws=16)
    assert rare_counters(given_payoffs, ["w"], 0.8) == {"w": ("s",)}
    assert rare_counters(given_payoffs, ["w"], 0.81) == {"w": ()}


@settings(max_examples=60)
@given(st.data())
def test_nobody_loses_the_answers_that_it_needs(data):
    members = [f"m{number}" for number in range(data.draw(st.integers(2, 7)))]
    won = st.one_of(st.none(), st.sampled_from([0, 3, 8, 10, 12, 17, 20]))
    scores = {}
    for place, first in enumerate(members):
        for second in members[place + 1 :]:
            wins = data.draw(won)
            if wins is not None:
                scores[first, second] = [1.0] * wins + [0.0] * (20 - wins)
    weak = data.draw(st.lists(st.sampled_from(members), unique=True))
    table = payoffs(members, scores)
    counters = rare_counters(table, weak)
    assert list(counters) == weak
    answers = (table.score >= 0.55) & (table.low > 0.5)
    staying = np.array([bool(counters.get(name, True)) for name in members])
    for place, name in enumerate(members):
        before, after = answers[:, place].sum(), answers[staying, place].sum()
        if name not in weak:
            assert after >= min(before, ANSWERS)
    for name in weak:
        assert not set(counters[name]) & set(weak)
        assert all(answers[members.index(name), members.index(other)] for other in counters[name])
