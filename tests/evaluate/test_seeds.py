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


def test_seeds_are_different_and_in_disjoint_ranges():
    assert TRAINING_SEEDS.stop <= EVALUATION_SEEDS.start and EVALUATION_SEEDS.stop <= 2**64
    runs = (0, 1, 2**31, 2**63, 2**70 + 7)
    trained = [training_seed(run, place, k) for run in runs for place in range(10) for k in range(10)]
    trained += [training_map_seed(run, k) for run in runs for k in range(10)]
    evaluated = [evaluation_seed(run, index) for run in runs for index in range(100)]
    assert len({*trained}) == 550 and len({*evaluated}) == 500
    check_seeds([*trained, np.uint64(7), 2**62 - 1], TRAINING_SEEDS)
    check_seeds(evaluated, EVALUATION_SEEDS)


@pytest.mark.parametrize(
    ("seed", "allowed", "message"),
    [
        (
            evaluation_seed(0, 0),
            TRAINING_SEEDS,
            r"outside the allowed range \[0, 4611686018427387904\); it is kept for",
        ),
        (2**63, TRAINING_SEEDS, r"seed 9223372036854775808 is outside the allowed range \[0, \d+\)$"),
        (np.int64(7), EVALUATION_SEEDS, r"seed 7 is outside .*\); evaluation_seed\(seed, index\) makes"),
        *((seed, TRAINING_SEEDS, "expected an integer") for seed in (-1, 0.5, True, 2**64, "1")),
    ],
)
def test_other_seeds_are_refused(seed, allowed, message):
    with pytest.raises(ValueError, match=message):
        check_seeds([seed], allowed)
    with pytest.raises(ValueError, match="at least 0"):
        evaluation_seed(-1, 0)


def test_validation_maps_are_in_no_evaluation_with_a_similar_seed():
    seeds = [*range(200), 1_000_000]
    watched = {evaluation_seed(validation_seed(seed), index) for seed in seeds for index in range(50)}
    judged = {evaluation_seed(seed, index) for seed in seeds for index in range(50)}
    assert len(watched) == len(judged) == 201 * 50
    assert not watched & judged
    assert all(seed in EVALUATION_SEEDS for seed in watched)
    assert all(0 <= validation_seed(seed) < 2**64 for seed in (*seeds, 2**64, 2**70))


FIRST, LAST = EVALUATION_SEEDS[0], EVALUATION_SEEDS[-1]


def test_a_file_has_a_seed_on_each_line(tmp_path):
    path = tmp_path / "seeds.txt"
    path.write_bytes(f"\ufeff# my maps\r\n{LAST}\r\n\n  {FIRST} \n{FIRST + 7}".encode())
    assert read_seeds(path) == read_seeds(str(path)) == (LAST, FIRST, FIRST + 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, r"seeds '.*': Is a directory"),
        ("utf-16", r"seeds '.*': is not UTF-8"),
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
    if text is None:
        path.mkdir()
    else:
        path.write_text(text, encoding="utf-16" if text == "utf-16" else None)
    with pytest.raises(ConfigError, match=message):
        read_seeds(path)
