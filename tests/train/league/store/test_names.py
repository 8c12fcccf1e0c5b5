import hashlib
import re

import pytest

from echelon_env.evaluate import BASELINES
from echelon_train.league.errors import LeagueError
from echelon_train.league.store import names
from echelon_train.league.store.names import ADJECTIVES, ANIMALS, MOST_LETTERS, check_name, memorable_name


def digest(number):
    return hashlib.sha256(str(number).encode()).hexdigest()


def test_a_name_follows_from_the_hash_and_can_be_one():
    drawn = [memorable_name(digest(n), ()) for n in range(500)]
    assert drawn == [memorable_name(digest(n), ()) for n in range(500)]
    assert len(set(drawn)) > 450
    for name in drawn:
        assert check_name(name) == name
        adjective, animal = name.split("-")
        assert adjective in ADJECTIVES and animal in ANIMALS


def test_words_come_once_and_leave_room_for_a_number():
    assert len(set(ADJECTIVES)) == len(ADJECTIVES) and len(set(ANIMALS)) == len(ANIMALS)
    assert max(map(len, ADJECTIVES)) + max(map(len, ANIMALS)) + len("--9999") <= MOST_LETTERS


def test_a_taken_name_is_not_given_again(monkeypatch):
    first = memorable_name(digest(0), ())
    assert memorable_name(digest(0), {first}) != first
    monkeypatch.setattr(names, "ADJECTIVES", ("wise",))
    monkeypatch.setattr(names, "ANIMALS", ("owl",))
    taken = []
    for n in range(4):
        taken.append(memorable_name(digest(n), taken))
    assert taken == ["wise-owl", "wise-owl-2", "wise-owl-3", "wise-owl-4"]


@pytest.mark.parametrize("name", ["", "Owl", "a b", "-owl", "owl\n", "../owl", "o" * 33, "ö"])
def test_impossible_names_are_refused(name):
    with pytest.raises(LeagueError, match=rf"name {re.escape(repr(name))}: expected 1 to 32 lower-case letters"):
        check_name(name)


@pytest.mark.parametrize("name", [*BASELINES, "untrained"])
def test_names_of_other_players_are_refused(name):
    with pytest.raises(LeagueError, match=f"name '{name}': is the name of a player that comes with the package"):
        check_name(name)
