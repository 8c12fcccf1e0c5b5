import pytest

from echelon_train.seeds import EVALUATION_SEEDS, TRAINING_SEEDS, check_seeds, evaluation_seed, training_seed


def test_the_ranges_share_no_seed():
    assert TRAINING_SEEDS.stop <= EVALUATION_SEEDS.start
    assert EVALUATION_SEEDS.stop <= 2**64


def test_every_seed_lies_in_its_range():
    for seed in (0, 1, 2**31, 2**63, 2**70):
        for index in range(20):
            assert training_seed(seed, index, index) in TRAINING_SEEDS
            assert evaluation_seed(seed, index) in EVALUATION_SEEDS


def test_seeds_differ_by_run_place_and_episode():
    seeds = {training_seed(run, place, k) for run in range(5) for place in range(10) for k in range(10)}
    assert len(seeds) == 500
    assert len({evaluation_seed(seed, index) for seed in range(5) for index in range(100)}) == 500


def test_seeds_of_the_other_range_are_refused():
    with pytest.raises(ValueError, match="outside the allowed range"):
        check_seeds([training_seed(0, 0, 0), evaluation_seed(0, 0)], TRAINING_SEEDS)


def test_negative_seeds_are_refused():
    with pytest.raises(ValueError, match="at least 0"):
        evaluation_seed(-1, 0)
