import pytest

from echelon_train.league.store.database import reading
from echelon_train.league.store.periods import (
    Period,
    derive,
    read_inputs,
)
from train.league.leagues import small_league


@pytest.mark.parametrize("ids", [((9,), (1,)), ((), (9,))])
def test_a_period_with_members_that_it_does_not_have(tmp_path, ids):
    league = small_league(tmp_path / "league")
    with (
        reading(league.path) as connection,
        pytest.raises(ValueError, match=r"period 2: names members of the ids \[9\]"),
    ):
        derive(read_inputs(connection, Period(2, 3, 3, 0.5, *ids)))
