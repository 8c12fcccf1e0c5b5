import pytest

from echelon_env import ConfigError
from echelon_train.config.ppo import PPOConfig
from echelon_train.config.schedules import Schedule
from echelon_train.config.train import NetworkConfig, battle_config
from train.small import small_run


def test_training_battles_keep_dead_mechs_and_terminate_at_the_time_limit():
    config = battle_config("skirmish")
    assert (config.dead_agents, config.time_limit) == ("persist", "terminate")


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda: small_run(steps=0), "steps"),
        (lambda: small_run(battles=0), "battles"),
        (lambda: small_run(eval_battles=3), "eval_battles: expected an even number, got 3"),
        (lambda: small_run(eval_battles=0), "eval_battles"),
        (lambda: small_run(seed=-1), "seed"),
        (lambda: small_run(seed=2**32), "seed"),
        (lambda: small_run(opponent="novic"), "did you mean 'novice'"),
        (lambda: small_run(ppo=PPOConfig(n_steps=16, batch_size=16, auxiliary_coef=0.1)), "auxiliary"),
        (lambda: PPOConfig(n_epochs=0), "ppo.n_epochs"),
        (lambda: PPOConfig(learning_rate=Schedule(2.0, 0.0, "linear")), "ppo.learning_rate"),
        (lambda: NetworkConfig(width=10**9), "network.width"),
    ],
)
def test_invalid_values_are_rejected_by_name(make, key):
    with pytest.raises(ConfigError, match=key):
        make()
