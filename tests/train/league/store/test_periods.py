import pytest

from echelon_train.league.store.database import reading
from echelon_train.league.store.periods import (
    Period,
    derive,
    read_inputs,
)
from train.league.leagues import played, saved, small_league


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
