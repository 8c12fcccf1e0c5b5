"""A trained policy as a teacher."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.storage.arrays import Arrays, check_arrays
from echelon_train.policy import BattlePolicy
from echelon_train.policy.raw_actions import RAW_DIM, environment_actions
from echelon_train.tensor_files import weights_of
from echelon_train.threads import torch_threads

Floats = NDArray[np.float32]


class PolicyTeacher:
    """A recurrent policy that labels observations with its actions: means of numbers, samples of everything else.

    Kickstarting and distillation minimise the cross-entropy to the teacher's distribution (Schmitt et al. 2018,
    "Kickstarting Deep Reinforcement Learning", section 3; Rusu et al. 2016, "Policy Distillation"). The loss of a
    sampled label is an unbiased estimate of it. The most probable switch or option would be another target: a trigger
    that the teacher pulls with probability 0.4 would never be pulled. For numbers a sample would add the teacher's
    exploration noise to the label, and the mean is what a Gaussian of a free mean learns from the samples.

    Parameters
    ----------
    policy
        The teacher, on the CPU. Its limits of actions become those of the battle.
    config
        The battle.
    rows
        Rows of the learner.
    seed
        Seed of the samples.
    """

    def __init__(self, policy: BattlePolicy, config: BattleConfig, rows: int, seed: int) -> None:
        policy.set_battle(config)
        policy.set_training_mode(False)
        self._policy, self._seed = policy, seed
        weights = {name: tensor.contiguous() for name, tensor in weights_of(policy).items()}
        self._digest = np.frombuffer(hashlib.sha256(safetensors.torch.save(weights)).digest(), np.uint8)
        self._state = torch.zeros(2, policy.lstm_actor.num_layers, rows, policy.lstm_actor.hidden_size)
        self._decisions = 0

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Clear the recurrent states of the rows (R,) where the mask is true."""
        self._state[:, :, torch.from_numpy(mask)] = 0.0

    def act(self, observations: Floats) -> Floats:
        """Actions (R, A) float32 in [-1, 1] for observations (R, D) float32."""
        rows = len(observations)
        draws = np.random.default_rng([self._seed, self._decisions]).standard_normal((rows, RAW_DIM), np.float32)
        self._decisions += 1
        with torch_threads(1), torch.inference_mode():
            distribution, after = self._policy.get_distribution(
                torch.from_numpy(np.ascontiguousarray(observations, np.float32)),
                (self._state[0], self._state[1]),
                torch.zeros(rows),
            )
            actions: Floats = environment_actions(distribution.mixed(torch.from_numpy(draws))).numpy()
            new = torch.stack(after)
        self._state.copy_(new)
        return actions

    def state_arrays(self) -> Arrays:
        """The complete state, and the SHA-256 of the weights."""
        state = self._state.numpy().copy()
        return {"state": state, "decisions": np.array([self._decisions], np.int64), "weights": self._digest.copy()}

    def restore_arrays(self, arrays: Mapping[str, NDArray[Any]], rows: int) -> None:
        """Continue from `state_arrays`. Raises ValueError, with nothing changed, for those of other weights or rows."""
        shape = (2, self._state.shape[1], rows, self._state.shape[3])
        kinds = {"state": (shape, np.float32), "decisions": ((1,), np.int64), "weights": ((32,), np.uint8)}
        check_arrays("the teacher's policy", arrays, kinds)
        if arrays["decisions"][0] < 0:
            raise ValueError(f"the teacher's policy: expected a count from 0, got {arrays['decisions'][0]}")
        if (arrays["weights"] != self._digest).any():
            raise ValueError("the teacher's policy: has other weights than when the run was saved")
        self._state.copy_(torch.from_numpy(arrays["state"].copy()))
        self._decisions = int(arrays["decisions"][0])
