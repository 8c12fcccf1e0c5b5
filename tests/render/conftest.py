import pytest

from echelon_env.config.battle import BattleConfig
from echelon_env.engine.state import State
from render.battles import CONFIG, handmade


@pytest.fixture
def config() -> BattleConfig:
    return CONFIG


@pytest.fixture
def state() -> State:
    return handmade()
