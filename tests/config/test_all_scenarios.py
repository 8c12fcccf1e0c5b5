"""The official checkers, and what they leave out, on every shipped scenario."""

import pytest

from echelon_env import BattleEnv, parallel_env, scenarios
from support.checkers import check_gymnasium, check_pettingzoo
from support.contract import check_parallel
from support.environments import FORMATS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("formats", FORMATS, ids=str)
@pytest.mark.parametrize("scenario", scenarios())
def test_official_checkers_in_every_format(scenario, formats):
    check_pettingzoo(8, scenario=scenario, max_steps=4, maps=1, **formats)
    for control in ("pilot", "team"):
        check_gymnasium(BattleEnv(scenario, control=control, max_steps=4, maps=1, **formats), **formats)


@pytest.mark.parametrize("dead_agents", ["terminate", "persist"])
@pytest.mark.parametrize("scenario", scenarios())
def test_episodes_are_repeated(scenario, dead_agents):
    check_parallel(lambda: parallel_env(scenario, max_cycles=6, dead_agents=dead_agents))
