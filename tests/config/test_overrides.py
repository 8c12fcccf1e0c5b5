"""The types of keyword arguments name what the classes take; tests/typing_checks.py has calls for mypy."""

import dataclasses
import inspect

from echelon_env import BattleConfig, BattleEnv
from echelon_env.config.overrides import Overrides
from echelon_env.envs.parallel import Arguments, BattleParallelEnv


def test_overrides_are_the_fields_of_the_configuration():
    assert list(Overrides.__annotations__) == [field.name for field in dataclasses.fields(BattleConfig)]


def test_arguments_are_the_parameters_of_the_parallel_environment():
    own = Arguments.__annotations__.keys() - Overrides.__annotations__.keys()
    parameters = inspect.signature(BattleParallelEnv).parameters.values()
    assert own == {each.name for each in parameters if each.kind is each.KEYWORD_ONLY}
    assert not own & inspect.signature(BattleEnv).parameters.keys() - {each.name for each in parameters}
