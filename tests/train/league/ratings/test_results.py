import pytest

from echelon_env.config.schema import ConfigError
from echelon_train.league.ratings.results import Results

GAMES = [("a", "b", 1.0), ("b", "a", 0.25), ("a", "c", 0.5), ("a", "b", 0.75)]


def test_results_are_the_sums_of_a_pairs_games_in_any_order():
    for games in (GAMES, [(second, first, 1 - score) for first, second, score in reversed(GAMES)]):
        results = Results(games)
        assert results.of("a") == {"b": (3, 2.5), "c": (1, 0.5)} and results.of("b") == {"a": (3, 0.5)}
        assert (results.games("a"), results.games("d"), results.of("d")) == (4, 0, {})
        assert set(results.members) == {"a", "b", "c"}


def test_results_are_added_to_others():
    together, rest = Results(GAMES[:2]), Results(GAMES[2:])
    together.update(rest)
    expected = Results(GAMES)
    assert all(together.of(name) == expected.of(name) for name in "abc") and together.games("a") == 4
    assert rest.games("a") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a", "a", 1, 0.5), "a game of two members, got 'a' against itself"),
        (("a", "b", 2, 3.0), "score: expected a number from 0 to 1, got 1.5"),
        (("a", "b", 1, float("nan")), "got nan"),
    ],
)
def test_impossible_results_are_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        Results().add(*arguments)
