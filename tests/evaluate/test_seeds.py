import numpy as np
import pytest

from echelon_env import ConfigError
from echelon_env.evaluate import (
    EVALUATION_SEEDS,
    TRAINING_SEEDS,
    check_seeds,
    evaluation_seed,
    read_seeds,
    training_map_seed,
    training_seed,
    validation_seed,
)


def test_the_ranges_are_disjoint():
    assert TRAINING_SEEDS.stop <= EVALUATION_SEEDS.start
    assert EVALUATION_SEEDS.stop <= 2**64


def test_every_seed_is_in_its_range():
    for seed in (0, 1, 2**31, 2**63, 2**70):
        for index in range(20):
            assert training_seed(seed, index, index) in TRAINING_SEEDS
            assert training_map_seed(seed, index) in TRAINING_SEEDS
            assert evaluation_seed(seed, index) in EVALUATION_SEEDS


def test_validation_maps_are_in_no_evaluation_with_a_similar_seed():
    seeds = [*range(200), 1_000_000]
    watched = {evaluation_seed(validation_seed(seed), index) for seed in seeds for index in range(50)}
    judged = {evaluation_seed(seed, index) for seed in seeds for index in range(50)}
    assert len(watched) == len(judged) == 201 * 50
    assert not watched & judged
    assert all(seed in EVALUATION_SEEDS for seed in watched)
    assert all(0 <= validation_seed(seed) < 2**64 for seed in (*seeds, 2**64, 2**70))


def test_seeds_differ_by_run_place_and_episode():
    seeds = {training_seed(run, place, k) for run in range(5) for place in range(10) for k in range(10)}
    seeds |= {training_map_seed(run, k) for run in range(5) for k in range(10)}
    assert len(seeds) == 550
    assert len({evaluation_seed(seed, index) for seed in range(5) for index in range(100)}) == 500


def test_seeds_of_the_other_range_are_refused():
    check_seeds([training_seed(0, 0, 0), np.uint64(7), 2**62 - 1], TRAINING_SEEDS)
    with pytest.raises(ValueError, match=r"outside the allowed range \[0, 4611686018427387904\); it is kept for eval"):
        check_seeds([training_seed(0, 0, 0), evaluation_seed(0, 0)], TRAINING_SEEDS)
    with pytest.raises(ValueError, match=r"seed 9223372036854775808 is outside the allowed range \[0, \d+\)$"):
        check_seeds([2**63], TRAINING_SEEDS)
    with pytest.raises(ValueError, match=r"seed 7 is outside .*\); evaluation_seed\(seed, index\) makes"):
        check_seeds([np.int64(7)], EVALUATION_SEEDS)


@pytest.mark.parametrize("seed", [-1, 0.5, True, 2**64, "1"])
def test_invalid_seeds_are_refused(seed):
    with pytest.raises(ValueError, match="expected an integer"):
        check_seeds([seed], TRAINING_SEEDS)


def test_negative_seeds_are_refused():
    with pytest.raises(ValueError, match="at least 0"):
        evaluation_seed(-1, 0)


FIRST, LAST = EVALUATION_SEEDS[0], EVALUATION_SEEDS[-1]


def test_a_file_has_a_seed_on_each_line(tmp_path):
    path = tmp_path / "seeds.txt"
    path.write_bytes(f"\ufeff# my maps\r\n{LAST}\r\n\n  {FIRST} \n{FIRST + 7}".encode())
    assert read_seeds(path) == read_seeds(str(path)) == (LAST, FIRST, FIRST + 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"seeds '.*': expected 1 to 10,000, got 0$"),
        (
            f"{FIRST}\n\n7\n",
            r"seeds\.txt:3: expected a seed .* to 9223372036854775807, got '7'; smaller seeds",
        ),
        (f"{FIRST}\n{LAST + 1}\n", r"seeds\.txt:2: expected a seed for evaluation, .* got '9223372036854775808'$"),
        (f"{FIRST}, {LAST}", r"seeds\.txt:1: expected a seed"),
        ("-1", r"seeds\.txt:1: .* got '-1'$"),
        ("\u0663" * 19, r"seeds\.txt:1: expected a seed"),
        ("9" * 5000, r"seeds\.txt:1: .* got '9{40}'$"),
        (f"{FIRST}\n# x\n{FIRST}\n", r"seeds\.txt:3: expected different seeds, got \d+ of line 1 again"),
        ("\n".join(str(FIRST + number) for number in range(10_001)), "expected 1 to 10,000, got 10,001"),
        ("#" * (1 << 20) + "\n", "larger than 1,048,576 bytes"),
    ],
)
def test_invalid_files_are_refused_with_the_line(text, message, tmp_path):
    path = tmp_path / "seeds.txt"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_seeds(path)


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "seeds.txt").write_bytes(b"\xff\xfe1")
    for path, reason in (("seeds.txt", "is not UTF-8"), ("none.txt", "No such file"), (".", "Is a directory")):
        with pytest.raises(ConfigError, match=f"seeds '.*': {reason}"):
            read_seeds(tmp_path / path)
