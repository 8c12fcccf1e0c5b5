import json

import pytest

from echelon_env import ConfigError
from echelon_env.evaluate import baseline, evaluation_seed, play_match
from echelon_env.evaluate.statistics import wilson
from echelon_train.runs.evaluation import check_battles, evaluate
from train.small import small_battle, small_evaluation


def test_an_evaluation_counts_its_outcomes():
    result = small_evaluation(outcomes=(1, 1, 0, -1, -1, -1))
    assert (result.wins, result.draws, result.losses) == (wilson(2, 6), wilson(1, 6), wilson(3, 6))
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert (document["player"], document["opponent"], document["action_mode"]) == ("policy", "novice", "sampled")
    assert (document["battles"], document["maps"], document["seed"]) == (6, 3, 3)
    assert document["win"]["count"] == 2
    assert document["win"]["share"] == pytest.approx(1 / 3)
    assert document["win"]["interval"] == [wilson(2, 6).low, wilson(2, 6).high]
    assert document["outcomes"] == [1, 1, 0, -1, -1, -1]


def test_an_evaluation_is_a_match_on_the_maps_of_its_seed():
    config = small_battle(max_steps=30, zone={"score_to_win": 2.0}, terrain={"size": 32})
    seeds = [evaluation_seed(7, index) for index in range(3)]
    match = play_match(baseline("random"), baseline("novice", 7), config, seeds, scenario="evaluation")
    result = evaluate(baseline("random"), "novice", config, num_battles=6, seed=7)
    assert (result.match, result.seed, result.maps) == (match, 7, 3)
    assert (result.maps_trained_on, result.trained_maps) == (None, None)
    assert evaluate(baseline("random"), "novice", config, num_battles=6, seed=7, num_threads=2) == result
    assert evaluate(baseline("random"), "novice", config, num_battles=6, seed=8).match.battles != match.battles


def test_unknown_opponents_are_refused():
    with pytest.raises(ConfigError, match="did you mean 'novice'"):
        evaluate(baseline("random"), "novic", small_battle(), num_battles=2, seed=0)


@pytest.mark.parametrize(("number", "message"), [(0, "at least 2"), (3, "even number"), (2.0, "expected an integer")])
def test_invalid_numbers_of_battles_are_refused(number, message):
    with pytest.raises(ConfigError, match=f"battles: .*{message}"):
        check_battles(number)
    with pytest.raises(ConfigError, match=f"battles: .*{message}"):
        evaluate(baseline("random"), "novice", small_battle(), num_battles=number, seed=0)
