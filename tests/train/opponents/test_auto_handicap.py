import numpy as np
import pytest

from echelon_train.opponents.auto_handicap import BAND, BATTLES, RUNGS, START, AutoHandicap


def play(auto, chance, battles, seed=0):
    """The rungs after every battle against an opponent that is beaten with a chance by rung."""
    generator, rungs = np.random.default_rng(seed), []
    for _ in range(battles):
        auto.record(generator.random() < chance(RUNGS.index(auto.handicap)))
        rungs.append(RUNGS.index(auto.handicap))
    return rungs


def test_the_rungs_weaken_the_rate_of_fire_first():
    assert (RUNGS[0].fire_rate, RUNGS[0].reaction_delay, RUNGS[START].fire_rate) == (1.0, 0.0, 0.25)
    pairs = [(each.fire_rate, -each.reaction_delay) for each in RUNGS]
    assert pairs == sorted(pairs, reverse=True) and len(set(pairs)) == len(RUNGS)


@pytest.mark.parametrize("even", [4, 12, 22])
@pytest.mark.parametrize("target", [0.3, 0.5, 0.7])
def test_it_stays_near_the_target(even, target):
    """The chance to win grows by 0.08 a rung; at `even` it is the target."""

    def chance(rung):
        return float(np.clip(target + 0.08 * (rung - even), 0, 1))

    rungs = play(AutoHandicap(target), chance, 4000)
    assert abs(np.mean(rungs[1500:]) - even) < 1.5
    assert abs(np.mean([chance(rung) for rung in rungs[1500:]]) - target) < 0.08


def test_it_does_not_move_within_the_band():
    auto = AutoHandicap(0.5)
    for battle in range(10 * BATTLES):
        assert not auto.record(battle % 2 == 0)
    assert RUNGS.index(auto.handicap) == START and BAND > 0


def test_a_learner_that_always_wins_or_loses_reaches_the_ends():
    assert play(AutoHandicap(0.95), lambda rung: 1.0, START * BATTLES)[-1] == 0
    assert play(AutoHandicap(0.05), lambda rung: 0.0, len(RUNGS) * BATTLES)[-1] == len(RUNGS) - 1
