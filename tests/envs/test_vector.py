import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from echelon_env import BattleVectorEnv, ConfigError
from echelon_env.engine.state import BODY
from echelon_env.layout.actions import ACTION_DIM, Action


def make(mode, num_envs=3, **overrides):
    return BattleVectorEnv("duel", num_envs, autoreset_mode=mode, **({"max_steps": 5} | overrides))


def test_masks_in_observations_of_teams():
    envs = BattleVectorEnv("trio", 2, control="team", action="discrete", mask_in_observation=True)
    assert envs.observation_space.contains(envs.reset(seed=0)[0])


def test_max_cycles_do_not_truncate_a_pilot_that_dies_in_the_last_one():
    envs = BattleVectorEnv("skirmish", 3, max_cycles=2)
    envs.reset(seed=0)
    shots = np.zeros(envs.action_space.shape, np.float32)  # damage is applied in ticks with events
    shots[:, Action.PRIMARY : Action.SPECIAL + 1] = 1.0
    for cycle in range(2):
        if cycle == 1:
            envs._battles.engine.state.pending[1, envs._battles.battles.rows[1, 0], BODY] = 1e9
        _, _, terminated, truncated, _ = envs.step(shots)
        assert terminated.tolist() == [False, cycle == 1, False]
        assert truncated.tolist() == [cycle == 1, False, cycle == 1]


def test_seeds_of_later_battles_may_exceed_63_bits():
    envs = make("NEXT_STEP")
    with pytest.raises(ValueError, match="seed: expected an integer in"):
        envs.reset(seed=2**64 - 1)
    envs.reset(seed=2**63 - 1)
    assert envs.np_random_seed == 2**63 - 1


def test_a_failed_first_reset_is_no_reset():
    envs = make("NEXT_STEP")
    with pytest.raises(ValueError, match="seed"):
        envs.reset(seed=[1, -5, 2])
    with pytest.raises(ResetNeeded, match="the first reset must start every battle"):
        envs.reset(options={"reset_mask": np.array([True, False, False])})
    with pytest.raises(ResetNeeded):
        envs.step(np.zeros((3, ACTION_DIM), np.float32))
    for wrong in ({"num_envs": 0}, {"mode": "LATER"}):
        with pytest.raises(ConfigError, match=r"num_envs: expected an integer|unknown autoreset_mode 'LATER'"):
            make(**{"mode": "NEXT_STEP"} | wrong)
    envs.reset(seed=0)
    with pytest.raises(ValueError, match=rf"actions: expected shape \(3, {ACTION_DIM}\), got \(2, {ACTION_DIM}\)"):
        envs.step(np.zeros((2, ACTION_DIM), np.float32))


def test_rendering_shows_every_battle():
    envs = make("NEXT_STEP", render_mode="rgb_array")
    envs.reset(seed=0)
    frames = envs.render()
    assert len(frames) == 3
    assert not np.array_equal(frames[0], frames[1])
