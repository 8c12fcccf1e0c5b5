import pytest

from echelon_env import ConfigError
from echelon_train.config.ppo import PPOConfig
from echelon_train.config.schedules import RewardSchedules, Schedule
from echelon_train.config.train import battle_config
from train.small import small_run

RISING = Schedule(0.0, 1.0, "linear")


def test_imitation_has_a_teacher_that_may_play():
    ppo = PPOConfig(n_steps=16, batch_size=16, policy_coef=0.0, kickstart_coef=RISING, learner_share=RISING)
    assert small_run(teacher="expert", ppo=ppo).ppo.learner_share == RISING


def test_training_battles_keep_dead_mechs_and_terminate_at_the_time_limit():
    config = battle_config("skirmish")
    assert (config.dead_agents, config.time_limit) == ("persist", "terminate")


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda: small_run(steps=0), "steps"),
        (lambda: small_run(eval_battles=3), "eval_battles: expected an even number, got 3"),
        (lambda: small_run(eval_seeds="nowhere.txt"), "eval_seeds: seeds 'nowhere.txt': No such file"),
        (lambda: small_run(eval_seeds=[]), "eval_seeds: expected 1 to 10,000 seeds, got 0"),
        (lambda: small_run(eval_seeds=[7]), "eval_seeds: seed 7 is outside the allowed range"),
        (lambda: small_run(eval_seeds=[2**62, 2**62]), "eval_seeds: expected different seeds"),
        (lambda: small_run(eval_seeds=3), "eval_seeds: expected the path of a file of seeds, or seeds, got 3"),
        (lambda: small_run(teacher="expert"), "teacher: expected one exactly if ppo.kickstart_coef is above 0"),
        (lambda: PPOConfig(learner_share=RISING), "ppo.learner_share: expected 1, as ppo.policy_coef is not 0"),
        (
            lambda: small_run(compile="graphs", ppo=PPOConfig(n_steps=16, batch_size=16, accumulate=2)),
            "ppo.accumulate: expected 1 with compile = graphs, got 2",
        ),
        (lambda: small_run(compile="default"), r"'compile': got 'default' \(valid: auto, graphs, off\)"),
        (lambda: small_run(reward_schedules=RewardSchedules(team_spirit=Schedule(0.0, 3.0, "linear"))), "team_spirit"),
        (lambda: PPOConfig(learning_rate=Schedule(2.0, 0.0, "linear")), "ppo.learning_rate"),
        (lambda: small_run(eval_opponent={"self": 1, "expert": 2}), "eval_opponent: .* is for training only"),
        (lambda: small_run(eval_opponent="novice@auto"), "eval_opponent: .* is for training only"),
        (lambda: small_run(maps=20_001), "'maps': expected a number from 0 to 20000"),
    ],
)
def test_invalid_values_are_rejected_by_name(make, key):
    with pytest.raises(ConfigError, match=key):
        make()
