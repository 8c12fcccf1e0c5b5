import pytest

from echelon_train.league.store.database import reading, writing
from echelon_train.league.store.periods import (
    LeagueSettings,
    Period,
    derive,
    derive_all,
    insert_period,
    next_period,
    read_events,
    read_inputs,
    read_periods,
)
from echelon_train.league.store.registry import League
from train.league.leagues import played, saved, small_league


def test_a_period_keeps_what_its_ratings_follow_from(tmp_path):
    league = League.create(tmp_path / "league", LeagueSettings(tau=0.7))
    league.add_checkpoint(saved(tmp_path / "a"), "main", "learner")
    league.record(played("novice", "learner"))
    with writing(league.path) as connection:
        period = next_period(connection, league.settings)
        insert_period(connection, period)
        assert read_periods(connection) == [period]
    assert period == Period(1, 1, 2, 0.7, (2,), (1,), period.closed_at)
    league.add_scripted("expert")
    with reading(league.path) as connection:
        ((number, ratings),) = derive_all(read_events(connection))
    assert number == 1 and ratings.keys() == {"novice", "learner"}, "members that joined later are not rated"


@pytest.mark.parametrize("ids", [((9,), (1,)), ((), (9,))])
def test_a_period_with_members_that_it_does_not_have(tmp_path, ids):
    league = small_league(tmp_path / "league")
    with (
        reading(league.path) as connection,
        pytest.raises(ValueError, match=r"period 2: names members of the ids \[9\]"),
    ):
        derive(read_inputs(connection, Period(2, 3, 3, 0.5, *ids)))


def test_a_learner_with_few_games_grows_less_certain_while_it_does_not_play(tmp_path):
    league = small_league(tmp_path / "league")
    league.add_checkpoint(saved(tmp_path / "a", 1), "main", "learner")
    league.add_checkpoint(saved(tmp_path / "b", 2), "past", "frozen")
    for number, name in enumerate(("learner", "frozen"), 10):
        league.record(played(name, "expert", (1, 1, -1, -1) * 10, number))
    league.close_period()
    course = [league.ratings()]
    league.close_period()
    course.append(league.ratings())
    league.record(played("trivial", "expert", (1, 1), 20))  # others play
    league.close_period()
    course.append(league.ratings())
    learner, frozen = ([ratings[name].deviation for ratings in course] for name in ("learner", "frozen"))
    assert learner[0] < learner[1] < learner[2]
    assert frozen[0] == frozen[1] >= frozen[2]
    league.record(played("learner", "expert", (1, 1, -1, -1), 21))
    league.close_period()
    assert league.ratings()["learner"].deviation < learner[0], "until it plays again"
