"""The plan of a league run."""

import pytest

from echelon_env.config.schema import ConfigError
from echelon_train.errors import RunFolderError
from echelon_train.supervisor.plan import MAX_BYTES, LeaguePlan, changed, read_plan, runs_folder, write_plan


def test_learners_have_names_by_role():
    plan = LeaguePlan(main=2, exploiter=3)
    assert [agent.name for agent in plan.agents] == ["main", "main-b", "exploiter", "exploiter-b", "exploiter-c"]
    assert [agent.number for agent in plan.agents] == [0, 1, 26, 27, 28]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"main": 27}, "main"),
        ({"until_rd": 45.0}, "until_rd.*expected a number from 46 to 350"),
        ({"main": 0, "exploiter": 0}, "at least one learner"),
    ],
)
def test_impossible_counts_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        LeaguePlan(**changes)


def test_a_plan_is_kept_and_changed(tmp_path):
    runs_folder(tmp_path).mkdir()
    assert read_plan(tmp_path) is None
    plan = LeaguePlan(exploiter=0, settings=("battles=8",), start="otter")
    write_plan(tmp_path, plan)
    assert read_plan(tmp_path) == plan
    assert changed(plan, {"main": 2, "maps": None}) == LeaguePlan(
        main=2, exploiter=0, settings=("battles=8",), start="otter"
    )


@pytest.mark.parametrize("text", ["", '{"main": "one"}', '{"coach": 1}', '{"config": "' + "x" * MAX_BYTES + '"}'])
def test_a_damaged_plan_is_an_error(tmp_path, text):
    runs_folder(tmp_path).mkdir()
    (runs_folder(tmp_path) / "plan.json").write_text(text)
    with pytest.raises(RunFolderError, match=r"plan\.json"):
        read_plan(tmp_path)


def test_settings_reach_the_run_config():
    plan = LeaguePlan(config="quickstart", settings=("battles=8", "scenario=duel-open"), steps=1000)
    config = plan.run_config()
    assert (config.battles, config.steps) == (8, 1000)
    with pytest.raises(ConfigError, match="KEY=VALUE"):
        LeaguePlan(settings=("battles",)).run_config()
    for key in ("seed=1", "league.path=other", "league.agent=x", "init=start"):
        with pytest.raises(ConfigError, match="a league run sets it itself"):
            LeaguePlan(settings=(key,)).run_config()
    with pytest.raises(ConfigError, match="curriculum"):
        LeaguePlan(settings=('curriculum=["duel-open", "duel"]',)).run_config()
    with pytest.raises(ConfigError, match="batles"):
        LeaguePlan(settings=("batles=8",)).run_config()
