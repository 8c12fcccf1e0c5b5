"""A correct vector environment, and vector environments that each break one rule."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv

FAULTS = []
NEXT_STEP, SAME_STEP, DISABLED = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED


def fault(check, *modes):
    def register(environment):
        FAULTS.append((check, environment, [*(modes or AutoresetMode)]))
        return environment

    return register


class Drift(gymnasium.Env):
    """A point drifts; an episode ends at random or after 9 steps."""

    def __init__(self):
        self.observation_space = Box(-20, 20, (2,), np.float32)
        self.action_space = Box(-1, 1, (2,), np.float32)
        self.place, self.time = np.zeros(2), 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time = self.np_random.uniform(-1, 1, 2), 0
        return self.place.astype(np.float32), {"time": 0}

    def step(self, action):
        self.place = self.place + action + self.np_random.uniform(-1, 1, 2)
        self.time += 1
        over = bool(self.np_random.random() < 0.15)
        info = {"time": self.time, "nested": {"place": self.place.copy()}}
        reward = float(self.place.sum())
        return self.place.astype(np.float32), reward, over, self.time == 9 and not over, info


class Batch(SyncVectorEnv):
    """A batch of `Drift`. `corrupt` may change the result of a step; `ended` marks environments done before it."""

    def __init__(self, num_envs, autoreset_mode):
        super().__init__([Drift] * num_envs, autoreset_mode=autoreset_mode)

    def step(self, actions):
        ended = self._autoreset_envs.copy()
        returned = super().step(actions)
        return self.corrupt(ended, *returned) or returned

    def corrupt(self, ended, observations, rewards, terminations, truncations, infos):
        pass


@fault("metadata", SAME_STEP)
class ModeIgnored(Batch):
    def __init__(self, num_envs, autoreset_mode):
        super().__init__(num_envs, NEXT_STEP)


@fault("spaces")
class SpaceNotBatched(Batch):
    def __init__(self, *args):
        super().__init__(*args)
        self.action_space = self.single_action_space


@fault("reset")
class ResetWithoutOptions(Batch):
    def reset(self, seed=None):
        return super().reset(seed=seed)


@fault("step")
class OneFlagOnly(Batch):
    def corrupt(self, ended, observations, rewards, terminations, truncations, infos):
        return observations, rewards, terminations, infos


@fault("observations")
class NotANumber(Batch):
    def corrupt(self, ended, observations, *_):
        observations[1, 0] = np.nan


@fault("rewards")
class RewardsAreInts(Batch):
    def corrupt(self, ended, observations, rewards, *others):
        return observations, rewards.astype(int), *others


@fault("flags")
class FlagsInAList(Batch):
    def corrupt(self, ended, observations, rewards, terminations, truncations, infos):
        return observations, rewards, terminations, truncations.tolist(), infos


@fault("infos")
class MaskMissing(Batch):
    def corrupt(self, ended, observations, rewards, terminations, truncations, infos):
        del infos["_time"]


@fault("action_mask")
class MaskThatDoesNotFit(Batch):
    def __init__(self, *args):
        super().__init__(*args)
        self.single_action_space, self.action_space = Discrete(2), gymnasium.spaces.MultiDiscrete([2] * self.num_envs)

    def reset(self, *, seed=None, options=None):
        observations, infos = super().reset(seed=seed, options=options)
        infos["action_mask"], infos["_action_mask"] = np.ones((3, 5), np.int8), np.ones(3, bool)
        return observations, infos


@fault("actions_written")
class WritesToActions(Batch):
    def step(self, actions):
        actions[:] = actions.round()
        return super().step(actions)


@fault("aliasing")
class TwoBuffers(Batch):
    def __init__(self, *args):
        super().__init__(*args)
        self.buffers, self.calls = np.zeros((2, self.num_envs)), 0

    def corrupt(self, ended, observations, rewards, *others):
        self.calls += 1
        buffer = self.buffers[self.calls % 2]
        buffer[:] = rewards
        return observations, buffer, *others


@fault("seed")
class NotSeeded(Batch):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=None, options=options)


@fault("seed", NEXT_STEP)
class ResetLeavesAnEndPending(Batch):
    def reset(self, *, seed=None, options=None):
        pending = self._autoreset_envs.copy()
        returned = super().reset(seed=seed, options=options)
        self._autoreset_envs = pending
        return returned


@fault("other_seed")
class OneSeedForEver(Batch):
    def reset(self, *, seed=None, options=None):
        first = seed[0] if isinstance(seed, list) else seed
        if first is None:
            return super().reset(options=options)
        seeds = seed if isinstance(seed, list) else [seed + i for i in range(self.num_envs)]
        return super().reset(seed=[None if one is None else one % self.num_envs for one in seeds], options=options)


@fault("next_episode")
class SeedsAgain(Batch):
    def reset(self, *, seed=None, options=None):
        if not options:
            self.seed = seed = self.seed if seed is None else seed
        return super().reset(seed=seed, options=options)


@fault("close")
class ClosesOnce(Batch):
    def close(self):
        del self.envs

    def __del__(self):
        """Older versions of Gymnasium close here."""


@fault("next_step", NEXT_STEP)
class FlagInTheResetStep(Batch):
    def corrupt(self, ended, observations, rewards, terminations, *_):
        terminations |= ended


@fault("same_step", SAME_STEP)
class NoFinalObservation(Batch):
    def corrupt(self, ended, observations, rewards, terminations, truncations, infos):
        infos.pop("final_obs", None)
        infos.pop("_final_obs", None)


@fault("reset_mask", DISABLED)
class MaskDisturbsTheOthers(Batch):
    def reset(self, *, seed=None, options=None):
        mask = (options or {}).get("reset_mask")
        observations, infos = super().reset(seed=seed, options=options)
        if mask is not None:
            observations[~mask] = 0
        return observations, infos


@fault("reset_mask", DISABLED)
class MaskedSeedIgnored(Batch):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=None if (options or {}).get("reset_mask") is not None else seed, options=options)


@fault("modes")
class FirstObservationIsTheLast(Batch):
    def corrupt(self, ended, observations, rewards, terminations, truncations, infos):
        for i in np.flatnonzero(terminations | truncations) if self.autoreset_mode == SAME_STEP else ():
            observations[i] = infos["final_obs"][i]


@fault("singles")
class OtherRewards(Batch):
    def corrupt(self, ended, observations, rewards, *_):
        rewards *= 1.001


@fault("seed_per_env")
class AnIntSeedForAll(Batch):
    def reset(self, *, seed=None, options=None):
        seeds = [seed] * self.num_envs if isinstance(seed, int) else seed
        return super().reset(seed=seeds, options=options)


@fault("position")
class LaterPlacesEarnMore(Batch):
    def corrupt(self, ended, observations, rewards, *_):
        rewards += np.arange(self.num_envs) * (rewards != 0)


@fault("independence")
class RewardsAreShared(Batch):
    def step(self, actions):
        observations, rewards, *others = super().step(actions)
        return observations, rewards + (rewards != 0) * np.sort(rewards).sum(), *others
