"""Values of the final observations of truncated episodes, which are computed at the end of a rollout."""

import numpy as np
import pytest
import torch

from train.ppo.random_env import RandomVecEnv, collect, make_model


class Overwriting(RandomVecEnv):
    """Gives the same arrays of final observations in every step."""

    def __init__(self, rows):
        super().__init__(rows)
        self._final = np.zeros((rows, 5), np.float32)

    def step_wait(self):
        self._final[:] = 9.0
        observations, rewards, dones, infos = super().step_wait()
        for row, info in enumerate(infos):
            if "terminal_observation" in info:
                self._final[row] = info["terminal_observation"]
                info["terminal_observation"] = self._final[row]
        return observations, rewards, dones, infos


def collected(env):
    model = make_model(env, steps=32)
    torch.manual_seed(0)
    collect(model)
    return model


def test_final_observations_may_be_overwritten_in_the_next_step():
    plain, overwriting = (collected(env(5)).rollout_buffer for env in (RandomVecEnv, Overwriting))
    assert (plain.bootstraps != 0.0).sum() > 3
    assert torch.equal(plain.bootstraps, overwriting.bootstraps)


def test_each_is_the_value_of_its_observation_and_state():
    """Also where there are more than rows, in several passes."""
    env, seen = RandomVecEnv(2), []
    step_wait = env.step_wait

    def watch():
        observations, rewards, dones, infos = step_wait()
        seen.append(infos)
        return observations, rewards, dones, infos

    env.step_wait = watch
    model = make_model(env, steps=128, normalize_returns=False)
    states, act = [], model.collector.act

    def keep(step):
        decision = act(step)
        states.append(tuple(each.clone() for each in model.collector.states.vf))
        return decision

    model.collector.act = keep
    torch.manual_seed(0)
    collect(model)
    found, checked = model.rollout_buffer.bootstraps, 0
    for step, vf in enumerate(states):
        for row, info in enumerate(seen[step]):
            if not info.get("TimeLimit.truncated", False):
                continue
            own, final = tuple(each[:, [row]] for each in vf), torch.as_tensor(info["terminal_observation"])[None]
            with torch.no_grad():
                expected = model.policy.predict_values(final, own, torch.zeros(1))
            assert float(found[step, row]) == pytest.approx(float(expected), rel=1e-5, abs=1e-6)
            checked += 1
    assert checked > 2 == model.n_envs
    assert (found != 0.0).sum() == checked
    seen.clear()
    model.learn(model.n_steps * model.n_envs, reset_num_timesteps=False)
    truncated = [[bool(info.get("TimeLimit.truncated", False)) for info in infos] for infos in seen]
    assert torch.equal(found != 0.0, torch.tensor(truncated)), "those of the rollout before are gone"
