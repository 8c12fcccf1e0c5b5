import itertools
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echelon_env.evaluate.estimates import map_scores, score_interval
from echelon_env.networks.checkpoint import WEIGHTS_FILE
from echelon_train.league.errors import LeagueError
from echelon_train.league.store.fsck import fsck
from echelon_train.league.store.promotion import conservative_score, lost_significantly, promote
from echelon_train.league.store.registry import League
from train.league.leagues import change, played, saved, uuids

GOOD, BAD = 42, 18
"""Of 60 maps, those that the better and the worse one win against the novice."""


def outcomes(won, lost, even=0):
    """The outcomes of maps that are won, lost or shared in both battles."""
    return (1,) * (2 * won) + (-1,) * (2 * lost) + (1, -1) * even


def challenged(folder):
    """A league of a worse and a better policy, and of one without matches; there is no champion."""
    league = League.create(folder / "league")
    for seed, name in enumerate(("worse", "better", "unplayed")):
        league.add_checkpoint(saved(folder / name, seed), "past", name)
    league.record(played("worse", "novice", outcomes(BAD, 60 - BAD), 1))
    league.record(played("better", "novice", outcomes(GOOD, 60 - GOOD), 2))
    league.rate_matches()
    return league


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return challenged(tmp_path_factory.mktemp("leagues"))


@pytest.fixture
def league(original, tmp_path):
    shutil.copytree(original.path, tmp_path / "league")
    return League.open(tmp_path / "league")


@pytest.fixture
def reigned(league):
    """A league whose champion is the worse policy."""
    promote(league, "worse", play=never)
    return league


def never(first, second):
    raise AssertionError(f"{first} and {second} have no match to play")


def plays(*results, number=50):
    """Plays matches with the given outcomes, and no more."""
    numbered = zip(itertools.count(number), results, strict=False)

    def play(first, second):
        for each, result in numbered:
            return played(first, second, result, each)
        return never(first, second)

    return play


@pytest.mark.parametrize(
    ("result", "significant"),
    [
        (outcomes(0, 3), False),
        (outcomes(0, 4), True),
        (outcomes(3, 9), False),
        (outcomes(20, 40), True),
        ((1, -1) * 40 + (-1, -1) * 10, True),
    ],
)
def test_a_match_that_is_lost_significantly(result, significant):
    match = played("worse", "better", result).match
    assert lost_significantly(score_interval({None: map_scores(match)})) == significant


def test_the_first_champion_needs_a_rating_that_comes_from_games(league):
    with pytest.raises(LeagueError, match="'unplayed' has no rating yet: no closed period has a game of it"):
        promote(league, "unplayed", play=never)
    league.record(played("unplayed", "novice", (1, 1), 3))
    with pytest.raises(LeagueError, match="'unplayed' has no rating yet"):
        promote(league, "unplayed", play=never)
    assert league.champion() is None and league.promotions() == []
    league.rate_matches()
    rating = league.ratings()["unplayed"]
    decision = promote(league, "unplayed", play=never, k=2.0)
    assert league.champion() == league.member("unplayed")
    assert league.promotions() == [decision.promotion]
    assert (decision.champion, decision.validation, decision.champion_score) == (None, None, None)
    assert (decision.score, decision.k) == (rating.rating - 2 * rating.deviation, 2.0)
    assert decision.reason.startswith("'unplayed' is the first champion, with its score of ")
    assert fsck(league.path) == []


def test_a_better_one_succeeds_the_champion(reigned):
    before = uuids(reigned)
    with pytest.raises(LeagueError, match="'worse' is the champion: it cannot retire before another one is promoted"):
        reigned.retire("worse")
    decision = promote(reigned, "better", play=plays(outcomes(6, 4)))
    assert reigned.champion().name == "better" and fsck(reigned.path) == []
    assert reigned.periods() == [1, 2], "one period was closed"
    scores = {name: conservative_score(rating) for name, rating in reigned.ratings().items()}
    assert (decision.score, decision.champion_score) == (scores["better"], scores["worse"])
    (recorded,) = reigned.matches("better", "worse")
    assert uuids(reigned) == [*before, recorded.uuid] and recorded.uuid == decision.validation.uuid
    assert decision.validation_score.estimate == 0.6
    first, second = reigned.promotions()
    assert (first.member, first.previous, first.validation, first.period) == ("worse", None, None, 1)
    assert second == decision.promotion and (second.previous, second.period) == ("worse", 2)
    assert (second.k, second.score, second.previous_score) == (1.0, decision.score, decision.champion_score)
    assert "'better' is champion: " in decision.reason and "(0.600, " in decision.reason
    reigned.retire("worse")
    assert reigned.member("worse").state == "retired"


def test_one_with_a_higher_score_that_the_champion_beats_is_refused(reigned):
    """It beats members that the champion does not beat, and does not beat the champion."""
    decision = promote(reigned, "better", play=plays(outcomes(0, 4)))
    assert decision.score > decision.champion_score and decision.promotion is None
    assert reigned.champion().name == "worse"
    assert "'better' is refused: it lost its validation match (0.000, 0.000 to 0.4" in decision.reason


def test_it_must_not_lose_in_another_scenario(reigned):
    """Matches of all scenarios are recorded, each once, and none is played after one that is lost."""
    won, lost = plays(outcomes(6, 4)), plays(outcomes(0, 4), number=41)
    decision = promote(reigned, "better", play=won, elsewhere={"duel": lost, "trio": never})
    assert decision.promotion is None and reigned.champion().name == "worse"
    assert "'better' is refused: it lost its match in duel (0.000, 0.000 to 0.4" in decision.reason
    assert len(reigned.matches("better", "worse")) == 2 and fsck(reigned.path) == []
    assert promote(reigned, "better", play=never, elsewhere={"duel": never}) == decision
    assert promote(reigned, "better", play=never).promotion is not None, "the match of the first scenario is won"


def test_a_refused_candidate_has_no_second_validation_match(league):
    promote(league, "better", play=never)
    refused = promote(league, "worse", play=plays(outcomes(4, 4)))
    assert promote(league, "worse", play=never) == refused
    assert len(league.matches()) == 3 and len(league.history()) == 2
    for n in range(10, 30):
        league.record(played("worse", "novice", outcomes(10, 0), n))
    league.rate_matches()
    decision = promote(league, "worse", play=never)
    assert decision.promotion.validation == refused.validation.uuid and decision.score > refused.score


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("bettr", "no member 'bettr'; did you mean 'better'"),
        ("novice", "'novice' is scripted: it has no policy"),
        ("unplayed", "'unplayed' is retired: it cannot become champion"),
        ("better", r"'better' cannot be used: .*missing"),
    ],
)
@pytest.mark.parametrize("champion", [None, "worse"])
def test_a_member_that_cannot_become_champion_does_not_play(league, champion, name, reason):
    if champion:
        promote(league, champion, play=never)
    league.retire("unplayed")
    (league.member_policy("better") / WEIGHTS_FILE).unlink()
    with pytest.raises(LeagueError, match=reason):
        promote(league, name, play=never)
    assert len(league.promotions()) == bool(champion)


def test_a_candidate_that_retires_while_it_plays(reigned):
    def play(first, second):
        reigned.retire(first)
        return played(first, second, outcomes(6, 4), 50)

    with pytest.raises(LeagueError, match="'better' is retired: it cannot become champion"):
        promote(reigned, "better", play=play)
    assert reigned.champion().name == "worse" and len(reigned.matches()) == 3


def test_another_candidate_is_promoted_during_the_validation_match(reigned):
    reigned.record(played("unplayed", "novice", outcomes(60, 0), 3))
    opponents = []

    def play(first, second):
        opponents.append(second)
        if second == "worse":
            promote(reigned, "unplayed", play=plays(outcomes(6, 4)))
        return played(first, second, outcomes(1, 9), 60 + len(opponents))

    decision = promote(reigned, "better", play=play)
    assert (decision.champion, decision.promotion, opponents) == ("unplayed", None, ["worse", "unplayed"])
    assert [each.member for each in reigned.promotions()] == ["worse", "unplayed"] and fsck(reigned.path) == []


def test_the_same_that_is_validated_by_two_processes_at_once(reigned):
    """The match that is recorded first counts, and the champion itself needs no other."""
    decisions = []

    def play(first, second):
        decisions.append(promote(reigned, "better", play=plays(outcomes(6, 4))))
        return played(first, second, outcomes(1, 9), 60)

    decisions.append(promote(reigned, "better", play=play))
    decisions.append(promote(reigned, "better", play=never, k=2.0))
    assert decisions[0] == decisions[1] == decisions[2] and decisions[0].validation_score.estimate == 0.6
    assert len(reigned.matches("worse", "better")) == 1 and len(reigned.history()) == 2
    assert reigned.champion().name == "better"


@pytest.mark.parametrize(
    ("statement", "subject", "problem"),
    [
        ("UPDATE promotions SET score = score + 0.1 WHERE id = 2", "2 of better", "the score of better is not that"),
        ("UPDATE promotions SET previous_score = 1 WHERE id = 2", "2 of better", "the score of worse is not that"),
        ("UPDATE promotions SET validation = (SELECT uuid FROM matches WHERE id = 1) WHERE id = 2", "2 of better",
         "period 2 has no validation match 00000000-0000-0000-0000-000000000001 of the two"),
        ("UPDATE promotions SET member = 4 WHERE id = 1", "2 of better", "follows worse, but the champion was unpl"),
        ("DELETE FROM promotions WHERE id = 2", "s", "2 were recorded and 1 remain: some were deleted"),
    ],
)  # fmt: skip
def test_an_altered_promotion_is_found(reigned, statement, subject, problem):
    promote(reigned, "better", play=plays(outcomes(6, 4)))
    change(reigned, statement)
    found = [(each.subject, each.problem) for each in fsck(reigned.path)]
    assert any(s == f"promotion{' ' * (subject != 's')}{subject}" and problem in p for s, p in found), found


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["worse", "better", "unplayed"]),
            st.integers(0, 6),
            st.integers(0, 6),
            st.integers(1, 4),
            st.sampled_from([0.0, 1.0, 2.0]),
        ),
        min_size=2,
        max_size=6,
    )
)
def test_every_champion_satisfies_the_rule_whatever_is_played(original, tmp_path_factory, attempts):
    folder = tmp_path_factory.mktemp("drawn") / "league"
    shutil.copytree(original.path, folder)
    league = League.open(folder)
    league.record(played("unplayed", "novice", outcomes(1, 1), 3))
    league.rate_matches()
    for number, (name, won, lost, even, k) in enumerate(attempts, 50):
        before, games = league.champion(), len(league.matches())
        decision = promote(league, name, play=plays(outcomes(won, lost, even), number=number), k=k)
        assert len(league.matches()) - games in ((0,) if before in (None, league.member(name)) else (0, 1))
        assert (league.champion().name == name) == (decision.promotion is not None)
        if decision.validation is not None:
            earned = decision.score > decision.champion_score and decision.validation_score.high >= 0.5
            assert (decision.promotion is not None) == earned
    assert fsck(folder) == []
