import numpy as np
import pytest

from echelon_train.opponents.handicaps import BATTLES, RUNGS, START, AutoHandicap
from echelon_train.opponents.results import Results


def play(target, chance, battles):
    """The rungs after every battle against an opponent that is beaten with a chance by rung."""
    auto, results, generator, rungs = AutoHandicap(target), Results(), np.random.default_rng(0), []
    for _ in range(battles):
        results.add(1 if generator.random() < chance(auto.rung) else -1)
        before = auto.rung
        assert auto.follow(results) == (auto.rung != before)
        rungs.append(auto.rung)
    return rungs


def test_the_rungs_weaken_the_rate_of_fire_first():
    assert (RUNGS[0].fire_rate, RUNGS[0].reaction_delay, RUNGS[START].fire_rate) == (1.0, 0.0, 0.25)
    pairs = [(each.fire_rate, -each.reaction_delay) for each in RUNGS]
    assert pairs == sorted(pairs, reverse=True) and len(set(pairs)) == len(RUNGS)


@pytest.mark.parametrize("even", [4, 22])
@pytest.mark.parametrize("target", [0.3, 0.7])
def test_it_stays_near_the_target(even, target):
    """The chance to win grows by 0.08 a rung; at `even` it is the target."""
    rungs = play(target, lambda rung: float(np.clip(target + 0.08 * (rung - even), 0, 1)), 4000)
    assert abs(np.mean(rungs[1500:]) - even) < 1.5


def test_a_rung_begins_with_no_battles_and_the_ends_are_reached():
    rungs = play(0.95, lambda rung: 1.0, START * BATTLES)
    assert rungs[BATTLES - 2 : 2 * BATTLES] == [START] + [START - 1] * BATTLES + [START - 2] and rungs[-1] == 0
    assert play(0.05, lambda rung: 0.0, len(RUNGS) * BATTLES)[-1] == len(RUNGS) - 1


def test_a_draw_is_no_win_and_an_even_opponent_stays():
    auto, results = AutoHandicap(0.5), Results()
    for battle in range(10 * BATTLES):
        results.add(1 if battle % 2 else 0)
        assert not auto.follow(results)
