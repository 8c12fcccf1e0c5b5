"""`NumericInfos`; tests/interop/test_torchrl.py has it under TorchRL itself."""

import numpy as np
import pytest

from echelon_env import parallel_env
from echelon_env.interop import NumericInfos


@pytest.mark.parametrize("action", ["continuous", "multi_discrete", "discrete"])
def test_infos_are_arrays_of_the_same_shapes_at_every_call(action):
    env = NumericInfos(parallel_env("skirmish", action=action, events=True, terrain={"size": 50}, max_steps=120))
    _, infos = env.reset(seed=0)
    kinds = {key: (value.dtype, value.shape) for key, value in infos["blue_0"].items()}
    assert {"alive", "own_score", "episode_statistics", "outcome"} <= kinds.keys()
    assert not {"reason", "events"} & kinds.keys()
    if action != "continuous":
        assert kinds["action_mask"] == (np.int8, env.action_masks()["blue_0"].shape)
    deaths, everyone = 0, {agent: env.action_space(agent).sample() for agent in env.possible_agents}
    while env.agents:
        *_, infos = env.step(everyone)  # actions of the dead, too
        for info in infos.values():
            assert {key: (value.dtype, value.shape) for key, value in info.items()} == kinds
        deaths += len(env.agents) < 10
    assert deaths
