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
    assert "Start from it: echelon train duel --init runs/imitate-duel\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "following"),
    [
        (["skirmish-open"], "--scenario skirmish-open --init runs/imitate-skirmish-open\n"),
        (["--set", 'scenario=["trio", "duel"]'], "--scenario trio --scenario duel --init runs/imitate-trio-duel\n"),
    ],
)
def test_other_scenarios_are_trained_with_the_settings_of_skirmish(runs, capsys, arguments, following):  # noqa: F811
    assert main(["imitate", *arguments]) == 0
    assert f"echelon train skirmish {following}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--teacher", "exprt", "did you mean 'expert'"),
        ("--teacher", "self", "teacher: "),
        ("--teacher", "policy:runs/x@fire_rate=0.5", "teacher: a policy teaches without a handicap"),
        ("--league.self-play", "0.5", "league.path: expected the folder of a league"),
    ],
)
def test_impossible_settings_are_refused(option, value, message, runs, capsys):  # noqa: F811
    assert main(["imitate", option, value]) == 2
    assert message in capsys.readouterr().err
    assert not runs


@pytest.mark.parametrize(
    ("options", "before", "after"),
    [
        (["duel", "--steps", "1_000_000", "--seed", "130"], "", ""),  # interrupted: it may go on
        (["--steps", "1_000"], "Warning: 1,000 decisions are 0.04 % of the 2,500,000", ""),
        (["--max-minutes", "1"], "", "Warning: 1,234 decisions are 0.049 % of the 2,500,000"),
    ],
)
def test_a_budget_that_is_a_fraction_of_what_the_settings_are_for_gets_a_warning(
    runs,  # noqa: F811
    options,
    before,
    after,
    capsys,
):
    """At its start where the number of decisions is known, else at the end."""
    main(["imitate", *options])
    printed = capsys.readouterr()
    for text, warning in ((printed.err, before), (printed.out, after)):
        assert warning in text and text.count("Warning") == bool(warning)
