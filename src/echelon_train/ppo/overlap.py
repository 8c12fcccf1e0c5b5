"""Updates beside the collection of the next rollout, which then has the weights from before the update."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from echelon_train.policy.sequences import SequencePolicy
from echelon_train.ppo.buffer import ChunkBuffer
from echelon_train.tensor_files import weights_of


class Overlap:
    """A copy of a policy that collects rollouts, and a stream of CUDA for the updates.

    Every update is one iteration late: it trains on what the weights from before the last update have collected.

    Parameters
    ----------
    policy
        The policy that is updated.
    """

    def __init__(self, policy: SequencePolicy) -> None:
        self._policy = policy
        self.actor = copied(policy)
        """The policy that collects."""
        self._rollout: ChunkBuffer | None = None
        self._stream = torch.cuda.Stream(policy.device) if policy.device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self.ends_later = self._stream is not None
        """Whether an update is read at the end of the next rollout."""
        self._late = False

    def begin_rollout(self) -> None:
        """Let the actor have the policy's weights, unless an update has begun since the last rollout."""
        if not self._late:
            self.actor.copy_from(self._policy)

    def forget(self) -> None:
        """The next rollout has the present weights of the policy."""
        self._late = False

    def weights(self) -> dict[str, Tensor]:
        """The weights that the next rollout has."""
        return weights_of(self.actor if self._late else self._policy)

    def restore(self, weights: Mapping[str, Tensor]) -> None:
        """Let the next rollout have other `weights`."""
        self.actor.copy_from(self._policy)  # its settings
        for name, tensor in weights_of(self.actor).items():
            tensor.copy_(weights[name])
        self._late = True

    @contextlib.contextmanager
    def update(self, buffer: ChunkBuffer) -> Iterator[ChunkBuffer]:
        """Begin an update of the policy in the block, from a copy of the rollout; on CUDA it ends later."""
        self.actor.copy_from(self._policy)
        self._late = True
        with self.beside():
            if self._rollout is None:
                self._rollout = copy.deepcopy(buffer)
            else:
                self._rollout.copy_(buffer)
            if self._stream is not None:  # the next rollout is written once this one has been copied
                copied_rollout = self._stream.record_event()
            yield self._rollout
        if self._stream is not None:
            torch.cuda.current_stream(self._policy.device).wait_event(copied_rollout)

    @contextlib.contextmanager
    def beside(self) -> Iterator[None]:
        """Launch kernels on the updates' stream in the block, after all that have been launched before."""
        if self._stream is None:
            yield
            return
        self._stream.wait_stream(torch.cuda.current_stream(self._policy.device))
        with torch.cuda.stream(self._stream):
            yield


def copied(policy: SequencePolicy) -> SequencePolicy:
    """A copy of a policy without its optimizer."""
    optimizer = policy.__dict__.pop("optimizer")
    try:
        actor: SequencePolicy = copy.deepcopy(policy)
    finally:
        policy.optimizer = optimizer
    actor.requires_grad_(False)
    for module in actor.modules():
        if isinstance(module, nn.LSTM):
            module.flatten_parameters()
    return actor
