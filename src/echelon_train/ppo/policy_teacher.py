"""A trained policy as a teacher."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.evaluate.networks import NetworkPolicy, PolicyFactory
from echelon_env.evaluate.players import BattleNoise
from echelon_env.storage.arrays import Arrays, check_arrays

_LABELS = 2
"""Part of the seeds of the samples, which are independent of the draws of battles from the same seed."""


class PolicyTeacher(NetworkPolicy):
    """A network that labels observations with samples of its actions.

    Kickstarting and distillation minimise the cross-entropy to the teacher's distribution (Schmitt et al. 2018,
    "Kickstarting Deep Reinforcement Learning", section 3; Rusu et al. 2016, "Policy Distillation"). The loss of a
    sampled label is an unbiased estimate of it. The most probable choice would be another target: a trigger that the
    teacher pulls with probability 0.4 would never be pulled.

    Parameters
    ----------
    factory
        Of the teacher's network.
    config
        The battle.
    rows
        Rows of the learner.
    seed
        Seed of the samples.
    num_threads
        Threads that share the rows.
    """

    def __init__(
        self, factory: PolicyFactory, config: BattleConfig, rows: int, seed: int, num_threads: int = 1
    ) -> None:
        super().__init__(
            factory.network, config, BattleNoise([seed], [_LABELS], rows, num_threads), action_mode="sampled"
        )
        self._weights = np.frombuffer(bytes.fromhex(factory.weights_sha256), np.uint8)

    def state_arrays(self) -> Arrays:
        """The complete state, and the SHA-256 of the weights."""
        drawn = self._noise.streams[0].bit_generator.state["state"]["state"]
        return {
            **{name: array.copy() for name, array in self._memory().items()},
            "stream": np.frombuffer(drawn.to_bytes(16, "little"), np.uint8),
            "weights": self._weights.copy(),
        }

    def restore_arrays(self, arrays: Mapping[str, NDArray[Any]], rows: int) -> None:
        """Continue from `state_arrays`. Raises ValueError, with nothing changed, for those of other weights or rows."""
        kinds = {name: ((rows, *array.shape[1:]), array.dtype) for name, array in self._memory().items()}
        check_arrays(
            "the teacher's policy", arrays, kinds | {"stream": ((16,), np.uint8), "weights": ((32,), np.uint8)}
        )
        if (arrays["weights"] != self._weights).any():
            raise ValueError("the teacher's policy: has other weights than when the run was saved")
        for name, array in self._memory().items():
            array[:] = arrays[name]
        generator = self._noise.streams[0].bit_generator
        drawn = generator.state
        drawn["state"]["state"] = int.from_bytes(arrays["stream"].tobytes(), "little")
        generator.state = drawn

    def _memory(self) -> Arrays:
        """The arrays of the rows, views."""
        keys = self._keys.view(np.int64)  # files have no unsigned numbers
        return {"memories": self._memories, "keys": keys, "numbers": self._numbers, "begins": self._begins}
