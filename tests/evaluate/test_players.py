import subprocess
import sys

import numpy as np
import pytest

from echelon_env import ConfigError, make_config, opponents
from echelon_env.evaluate import BASELINES, BattleNoise, baseline
from echelon_env.layout.observations import OBSERVATION_DIM

DUEL = make_config("duel")
OBSERVATIONS = np.zeros((6, OBSERVATION_DIM), np.float32)


def noise(seeds=(5, 6), stream=(0, 0), team_size=3):
    return BattleNoise(seeds, stream, team_size)


def test_importing_evaluate_does_not_import_scipys_statistics():
    code = "import sys, echelon_env.evaluate; assert 'scipy.stats' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_plays(name):
    player = baseline(name)
    assert player.name == name
    assert player.action_mode == {"idle": "none", "random": "uniform", "champion": "sampled"}.get(name, "scripted")
    assert player.battle is None
    if name != "champion":
        assert (player.trained_maps, player.identity) == (None, {})
    assert baseline(name) is player
    assert baseline(name, 1) != player
    policy, other = (player.make(DUEL, noise()) for _ in range(2))
    assert policy is not other
    policy.reset(np.ones(6, np.bool_))
    actions = policy.act(OBSERVATIONS)
    assert (actions.shape, actions.dtype) == ((6, 27), np.float32)
    assert np.abs(actions).max() <= 1.0
    assert (name == "idle") == (not actions.any() and name not in (*opponents.LEVELS, "champion"))


def test_unknown_players_are_refused():
    with pytest.raises(ConfigError, match="unknown player 'novic'; did you mean 'novice'"):
        baseline("novic")
    with pytest.raises(ValueError, match="seed"):
        baseline("novice", -1)


def test_every_battle_has_its_own_random_numbers():
    both, alone = noise((5, 6)), noise((6,))
    for _ in range(3):
        np.testing.assert_array_equal(both.uniform()[3:], alone.uniform())
    assert not np.array_equal(noise((5,)).uniform(), noise((6,)).uniform())
    assert not np.array_equal(noise(stream=(0, 1)).uniform(), noise(stream=(1, 0)).uniform())
    np.testing.assert_array_equal(noise().uniform(), noise().uniform())
