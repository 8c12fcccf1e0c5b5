import numpy as np
import pytest

from echelon_env import BattleEngine, make_config, opponents
from echelon_env.opponents import Handicap, Resumable

CONFIG = make_config("duel")
MAKERS = {
    "scripted": lambda: opponents.make("expert", 2, CONFIG),
    "mixture": lambda: opponents.make({"novice": 1, "expert": 1}, 2, CONFIG),
    "handicap": lambda: opponents.make("expert@reaction_delay=1,aim_error=0.3,fire_rate=0.4", 2, CONFIG),
}


@pytest.fixture(scope="module")
def seen():
    """Observations of two mechs in a battle, (decisions, R, D)."""
    noise = np.random.default_rng(0)
    engine = BattleEngine(CONFIG, 1)
    observations = [engine.reset([2])[0].copy()]  # a map where experts remember their way around walls
    for _ in range(30):
        actions = noise.uniform(-1, 1, (1, 2, engine.action_dim)).astype(np.float32)
        observations.append(engine.step(actions)[0][0].copy())
    return observations


def play(player, observations):
    return [player.act(rows).tobytes() for rows in observations]


@pytest.mark.parametrize("name", MAKERS)
def test_a_player_continues_where_another_stopped(name, seen):
    player, other = MAKERS[name](), MAKERS[name]()
    play(player, seen[:12])
    arrays = player.state_arrays()
    assert isinstance(player, Resumable)
    other.restore_arrays(arrays, 2)
    ahead = play(player, seen[12:])
    assert play(other, seen[12:]) == ahead
    assert play(MAKERS[name](), seen[12:]) != ahead


def test_mutable_settings_are_part_of_the_state(seen):
    player, other = (Handicap(MAKERS["mixture"](), CONFIG, 2) for _ in range(2))
    play(player, seen[:3])
    player.policy.weights = {"veteran": 2.0, "trivial": 0.0}
    player.reaction_delay, player.aim_error, player.fire_rate = 0.75, 0.1, 0.2
    play(player, seen[3:9])
    other.restore_arrays(player.state_arrays(), 2)
    assert (other.reaction_delay, other.aim_error, other.fire_rate) == (0.75, 0.1, 0.2)
    assert dict(other.policy.weights) == {"veteran": 2.0}
    assert other.policy.levels.tolist() == player.policy.levels.tolist()
    for each in (player, other):
        each.reset(np.array([True, False]))
    assert play(other, seen[9:]) == play(player, seen[9:])


def entry(index, value):
    def change(array):
        array = array.copy()
        array[index] = value
        return array

    return change


REFUSED = [
    ("scripted", "seed", entry(0, 9), "seed: expected 2, got 9"),
    ("scripted", "level", entry(0, 1), "level: expected 'expert', got 'novice'"),
    ("scripted", "memories", lambda a: a[:1], r"'memories': expected \(2, \d+\) uint8, got \(1, \d+\) uint8"),
    ("mixture", "level", entry(0, 5), "expected levels from -1 to 4"),
    ("mixture", "battles", entry(1, -1), "counts of battles from 0"),
    ("mixture", "weights", entry(0, np.nan), "weights: expected a finite number"),
    ("mixture", "weights", entry(slice(None), 0.0), "weights: expected"),
    ("handicap", "handicaps", entry(0, 99.0), "'reaction_delay': expected a number from 0 to 10.0 s, got 99"),
    ("handicap", "handicaps", entry(2, np.nan), "'fire_rate': expected a number from 0 to 1"),
    ("handicap", "pending", lambda a: a[:, :1], r"'pending': expected \(any, 2, \d+\) float32"),
    ("handicap", "seed", entry(0, 9), "seed: expected 2, got 9"),
    ("handicap", "policy.level", entry(0, 0), "level: expected 'expert', got 'trivial'"),
]


@pytest.mark.parametrize(("name", "key", "change", "message"), REFUSED)
def test_an_invalid_state_changes_nothing(name, key, change, message, seen):
    player, other = MAKERS[name](), MAKERS[name]()
    play(player, seen[:8])
    play(other, seen[:3])
    arrays, before = player.state_arrays(), other.state_arrays()
    with pytest.raises(ValueError, match=message):
        other.restore_arrays({**arrays, key: change(arrays[key])}, 2)
    after = other.state_arrays()
    assert all(after[key].tobytes() == before[key].tobytes() for key in before)
