"""The trainer learns: longer than the other tests, run by ``make test-slow``; `.ci/run` runs the open duel."""

import pytest

from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.checkpoints.players import network_player
from echelon_train.config.train import TrainConfig, battle_config
from echelon_train.runs.building import initial_policy
from echelon_train.runs.evaluation import evaluate
from echelon_train.runs.training import train


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "steps"), [("duel-open", 60_000), ("duel", 150_000)])
def test_a_duellist_beats_its_untrained_self_on_maps_that_it_never_saw(tmp_path, quiet, scenario, steps):
    config = TrainConfig(battle=battle_config(scenario), opponent="trivial", steps=steps, device="cpu", eval_every=0)
    train(config, tmp_path / "run", console=quiet)
    trained = load_checkpoint(tmp_path / "run").policy
    before, after = (
        evaluate(
            network_player(name, policy, config.network),
            "trivial", config.battle, num_battles=100, seed=3,
        )
        for name, policy in (("untrained", initial_policy(config)), ("trained", trained))
    )  # fmt: skip
    assert before.wins.high < 0.2
    assert after.wins.low > 0.6
