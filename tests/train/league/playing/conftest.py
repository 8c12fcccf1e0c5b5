import pytest

from echelon_train.league.playing import jobs
from train.league.matches import playing_league


@pytest.fixture(autouse=True)
def no_policy_is_loaded():
    jobs._load.cache_clear()


@pytest.fixture
def league(tmp_path):
    return playing_league(tmp_path / "league")
