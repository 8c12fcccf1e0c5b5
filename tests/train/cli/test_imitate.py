from pathlib import Path

import pytest

from echelon_env.cli import main
from echelon_train.config.files import load_run_config
from train.cli.test_train import runs  # noqa: F401  (a fixture)


def test_it_imitates_the_expert_and_says_how_to_start_from_the_result(runs, capsys):  # noqa: F811
    assert main(["imitate", "duel", "--teacher", "veteran@fire_rate=0.5", "--steps", "1_000"]) == 0
    (run,) = runs
    overrides = {"scenario": "duel", "teacher": "veteran@fire_rate=0.5", "steps": "1_000"}
    assert run.config == load_run_config("imitate", overrides)
    assert run.out == Path("runs/imitate-duel")
    assert "Start from it: echelon train --init runs/imitate-duel\n" in capsys.readouterr().out


def test_only_the_teacher_trains_the_policy(runs):  # noqa: F811
    assert main(["imitate"]) == 0
    (run,) = runs
    ppo = run.config.ppo
    assert (ppo.policy_coef, ppo.ent_coef.start, ppo.kickstart_coef.end) == (0.0, 0.0, 1.0)
    assert (str(run.config.teacher), run.out.name) == ("expert", "imitate-skirmish")


@pytest.mark.parametrize(
    ("teacher", "message"),
    [
        ("exprt", "did you mean 'expert'"),
        ("self", "teacher: "),
        ("policy:runs/x@fire_rate=0.5", "teacher: a policy teaches without a handicap"),
    ],
)
def test_impossible_teachers_are_refused(teacher, message, runs, capsys):  # noqa: F811
    assert main(["imitate", "--teacher", teacher]) == 2
    assert message in capsys.readouterr().err
    assert not runs
