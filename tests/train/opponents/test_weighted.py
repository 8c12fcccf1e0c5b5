import copy
import dataclasses
from collections import Counter

import pytest

from echelon_env import ConfigError
from echelon_env.config import HandicapConfig, Opponents
from echelon_train.opponents.auto_handicap import BATTLES
from echelon_train.opponents.weighted import WINDOW, WeightedOpponents

MIXED = Opponents.parse({"expert@auto": 3, "novice@fire_rate=0.5": 1, "self": 4})


def test_opponents_are_drawn_by_their_weights():
    drawn = Counter(WeightedOpponents(MIXED, 1, 0.5).draw(4000))
    assert {name: round(count / 500) for name, count in drawn.items()} == {
        "expert@auto": 3, "novice@fire_rate=0.5": 1, "self": 4,
    }  # fmt: skip


def test_a_name_is_a_player_with_a_handicap():
    opponents = WeightedOpponents(MIXED, 1, 0.5)
    assert opponents.player("self") == ("self", None)
    assert opponents.player("novice@fire_rate=0.5") == ("novice", HandicapConfig(fire_rate=0.5))
    before = opponents.player("expert@auto")[1]
    changed = [opponents.record("expert@auto", 1) for _ in range(BATTLES)]
    assert changed == [False] * (BATTLES - 1) + [True]
    assert opponents.player("expert@auto")[1].fire_rate > before.fire_rate


def test_results_are_counted_by_opponent_and_restored():
    opponents, again = (WeightedOpponents(MIXED, 1, 0.5) for _ in range(2))
    for outcome in [1, -1] * WINDOW + [1, 0] * (WINDOW // 2):
        opponents.record("self", outcome)
    opponents.draw(7)
    found = opponents.metrics()
    assert (found["self/win_rate"], found["self/battles"]) == (0.5, 3 * WINDOW)
    assert "expert@auto/win_rate" not in found and found["expert@auto/handicap/fire_rate"] == 0.25
    again.restore(copy.deepcopy(opponents.state))
    assert again.metrics() == found
    assert again.draw(20) == opponents.draw(20)
    for part in ("results", "handicaps"):
        with pytest.raises(ConfigError, match=f"opponents: {part}: expected .*expert@auto.*, got \\[\\]"):
            again.restore(dataclasses.replace(opponents.state, **{part: {}}))
