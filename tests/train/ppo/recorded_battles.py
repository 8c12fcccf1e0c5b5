"""Models with `BattlePolicy`, trained on observations recorded in battles."""

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnvWrapper

from echelon_train.policy import BattlePolicy, action_space, observation_space
from echelon_train.ppo.losses import Coefficients, losses
from echelon_train.ppo.normalize import normalize_advantages
from train.policy.battle_data import battle_data
from train.ppo.random_env import RandomVecEnv, collect, make_model

STEPS, ROWS = 16, 12
SMALL = {"width": 8, "head": 8, "set_width": 4, "map_channels": 2, "communicate": True}  # so that all outputs count


class RecordedBattles(RandomVecEnv):
    """Recorded observations of battles in random order; some rows are dead."""

    def __init__(self):
        self._seen, self.alive, self.states = (tensor.numpy() for tensor in battle_data())
        super().__init__(ROWS, 0, observation_space(), action_space())

    def _observe(self, dead):
        dead = dead | (self._rng.random(self.num_envs) < 0.1)
        pools = [self._seen[self.alive == alive] for alive in (False, True)]
        drawn = [pool[self._rng.integers(len(pool), size=self.num_envs)] for pool in pools]
        return np.where(dead[:, None], *drawn)


class WithGlobalState(VecEnvWrapper):
    """Adds random recorded global states to the observations."""

    def __init__(self, env):
        states = spaces.Box(-np.inf, np.inf, env.states.shape[1:], np.float32)
        super().__init__(env, spaces.Dict({"observation": env.observation_space, "state": states}))
        self._rng = np.random.default_rng(5)

    def _add(self, observations):
        states = self.venv.states[self._rng.integers(len(self.venv.states), size=len(observations))]
        return {"observation": observations, "state": states}

    def reset(self):
        return self._add(self.venv.reset())

    def step_wait(self):
        observations, rewards, dones, infos = self.venv.step_wait()
        for row in np.flatnonzero(dones):
            final = self._add(infos[row]["terminal_observation"][None])
            infos[row]["terminal_observation"] = {name: part[0] for name, part in final.items()}
        return self._add(observations), rewards, dones, infos


def model_with_rollout(network, **settings):
    env = WithGlobalState(RecordedBattles()) if network.sees_state else RecordedBattles()
    model = make_model(env, steps=STEPS, chunk=4, policy=BattlePolicy, policy_kwargs={"network": network}, **settings)
    collect(model)
    return model


def losses_of(model, batch, weights=None):
    weights = weights or Coefficients(0.2, 0.01, 0.5)
    num_actor, num_all = batch.actor_mask.sum().float(), torch.tensor(float(len(batch.actions)))
    return losses(model.policy, batch, model.policy.return_normalizer, weights, num_actor, num_all)


def whole_batch(model):
    buffer = model.rollout_buffer
    return buffer.batch(
        torch.arange(buffer.num_chunks),
        normalize_advantages(buffer.advantages, buffer.actor_mask),
    )


def set_heads(model):
    """Give the heads random weights; by default they start near zero and hardly depend on their inputs."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, parameter in model.policy.named_parameters():
            if name.startswith(("action_net.weight", "value_net", "target_query")):
                parameter.copy_(0.5 * torch.randn(parameter.shape, generator=generator))
