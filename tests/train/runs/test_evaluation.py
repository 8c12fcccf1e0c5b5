import numpy as np
import pytest

from echelon_env import ConfigError
from echelon_env.config import Opponents
from echelon_env.evaluate import baseline, evaluation_seed, play_match
from echelon_env.evaluate.estimates import wilson
from echelon_train.runs.evaluation import Evaluation, check_battles, evaluate
from train.small import small_battle, small_evaluation


def test_an_evaluation_counts_its_outcomes():
    result = small_evaluation(outcomes=(1, 1, 0, -1, -1, -1))
    assert (result.wins, result.draws, result.losses) == (wilson(2, 6), wilson(1, 6), wilson(3, 6))


def test_an_evaluation_is_a_match_on_the_maps_of_its_seed():
    config = small_battle(max_steps=30, zone={"score_to_win": 2.0}, terrain={"size": 32})
    seeds = [evaluation_seed(7, index) for index in range(3)]
    match = play_match(baseline("random"), baseline("novice", 7), config, seeds, scenario="evaluation")
    result = evaluate(baseline("random"), "novice", config, num_battles=6, seed=7)
    assert (result.matches, result.maps) == ((match,), 3)
    assert (result.maps_trained_on, result.trained_maps) == (None, None)
    assert evaluate(baseline("random"), "novice", config, num_battles=6, seed=7, num_threads=2) == result
    assert evaluate(baseline("random"), "novice", config, num_battles=6, seed=8).battles != match.battles


@pytest.mark.parametrize(
    ("weights", "battles", "shares"),
    [
        ((1, 1), 4, (2, 2)),
        ((3, 1), 8, (6, 2)),
        ((1, 1, 1), 50, (18, 16, 16)),
        ((1e-6, 1), 4, (2, 2)),
        ((2, 3), 50, (20, 30)),
    ],
)
def test_several_opponents_share_the_battles_by_weight_on_different_maps(weights, battles, shares):
    mixture = dict(zip(("trivial", "novice", "expert"), weights, strict=False))
    config = small_battle(max_steps=5)
    result = evaluate(baseline("random"), mixture, config, num_battles=battles, seed=7)
    assert {match.second: len(match.battles) for match in result.matches} == dict(zip(mixture, shares, strict=True))
    assert len({battle.seed for battle in result.battles}) == result.maps == battles // 2
    with pytest.raises(ConfigError, match="battles: expected two for each opponent"):
        evaluate(baseline("random"), mixture, config, num_battles=2 * len(weights) - 2, seed=7)


def test_shares_are_weighted_means_with_intervals_that_cover_them():
    """By simulation: three opponents, of other shares of the battles than their weights."""
    generator, chances, counts = np.random.default_rng(0), np.array([0.9, 0.5, 0.1]), (12, 20, 60)
    opponents = Opponents.parse({"novice": 1, "veteran": 2, "expert": 1})
    truth, covered = chances @ [0.25, 0.5, 0.25], []
    for _ in range(400):
        matches = tuple(
            small_evaluation(outcomes=tuple(np.where(generator.random(count) < chance, 1, -1).tolist())).matches[0]
            for chance, count in zip(chances, counts, strict=True)
        )
        share = Evaluation(opponents, matches, None, None).wins
        assert share.estimate == pytest.approx(np.array([match.wins for match in matches]) / counts @ [0.25, 0.5, 0.25])
        covered.append(share.low <= truth <= share.high)
    assert 0.92 < np.mean(covered) < 0.985


@pytest.mark.parametrize(("number", "message"), [(0, "at least 2"), (3, "even number"), (2.0, "expected an integer")])
def test_invalid_numbers_of_battles_are_refused(number, message):
    with pytest.raises(ConfigError, match=f"battles: .*{message}"):
        check_battles(number)
    with pytest.raises(ConfigError, match=f"battles: .*{message}"):
        evaluate(baseline("random"), "novice", small_battle(), num_battles=number, seed=0)
