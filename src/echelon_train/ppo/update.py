"""What an update of a policy computes: gradients of minibatches, and normalised returns and advantages."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from echelon_train.config.ppo import COMPILE_MODES, CompileMode
from echelon_train.policy.sequences import SequencePolicy
from echelon_train.ppo import distributed
from echelon_train.ppo.buffer import Batch, ChunkBuffer
from echelon_train.ppo.cuda_graphs import Graphed
from echelon_train.ppo.losses import Coefficients, Losses, add_gradients


class Update:
    """Gradients and moments of a rollout for a policy, over all processes.

    Parameters
    ----------
    policy
        The policy.
    mode
        How decisions and losses are computed, see `CompileMode`.
    parts
        Parts of a minibatch whose gradients are computed one after the other.

    Raises
    ------
    ValueError
        For a mode that the policy does not allow.
    """

    def __init__(self, policy: SequencePolicy, mode: CompileMode, parts: int) -> None:
        self._policy = policy
        self.add_gradients = compiled(policy, mode)
        self.parts = parts
        """It is doubled when they do not fit the device's memory."""

    def gradient(self, buffer: ChunkBuffer, chunks: Tensor, advantages: Tensor, coefficients: Coefficients) -> Losses:
        """Compute a minibatch's gradient, summed over all processes. Returns the losses over all processes.

        `chunks` and `advantages` are those of `ChunkBuffer.batch`.
        """
        counts = distributed.all_reduce_sum(buffer.sample_counts(chunks))
        totals = counts.clamp_min(1.0).unbind()
        numbers = None
        while numbers is None:
            parts = min(self.parts, len(chunks))
            try:
                numbers = self._backward(
                    (buffer.batch(part, advantages) for part in chunks.tensor_split(parts)),
                    # a CUDA graph would write over the gradients of the part before
                    self.add_gradients if parts == 1 else add_gradients,
                    coefficients,
                    totals,
                )
            except torch.OutOfMemoryError:
                if parts == len(chunks):
                    raise
                self.parts = 2 * parts
                if isinstance(self.add_gradients, Graphed):
                    self.add_gradients.clear()  # parts are not recorded, and the whole does not fit
            if numbers is None and self._policy.device.type == "cuda":
                torch.cuda.empty_cache()  # the failed attempt's memory is in pieces of other sizes
        return Losses.unpacked(distributed.all_reduce_gradients(self._policy.parameters(), numbers.unbind()))

    def _backward(
        self,
        batches: Iterable[Batch],
        compute: Callable[..., Tensor],
        coefficients: Coefficients,
        totals: tuple[Tensor, ...],
    ) -> Tensor:
        """Compute the gradient of the parts of a minibatch; returns the sum of their losses, packed."""
        policy = self._policy
        policy.optimizer.zero_grad()
        results = [compute(policy, batch, policy.return_normalizer, coefficients, *totals) for batch in batches]
        return torch.stack(results).sum(0)

    def keep_policy(self) -> None:
        """Drop the gradients of all parameters that the actor uses: the critic's loss would change a shared trunk."""
        critic = {id(parameter) for parameter in self._policy.critic_parameters()}
        for parameter in self._policy.parameters():
            if id(parameter) not in critic:
                parameter.grad = None

    def normalize_returns(self, returns: Tensor) -> None:
        """Update the policy's normaliser of returns, if there is one, with those of all processes."""
        normalizer = self._policy.return_normalizer
        if normalizer is None:
            return
        exact = returns.double()
        sums = torch.stack([exact.new_tensor(float(exact.numel())), exact.sum(), (exact**2).sum()])
        count, total, squares = distributed.all_reduce_sum(sums).unbind()
        normalizer.update(total / count, squares / count, self._policy.value_net)


def compiled(policy: SequencePolicy, mode: CompileMode) -> Callable[..., Tensor]:
    """Record the decisions of a dense policy, and return such a version of `add_gradients`.

    ``auto`` is for a policy on CUDA that can be recorded ``graphs``, else ``off``. Raises ValueError for a policy that
    is not dense or cannot be recorded, if that is needed, and for another mode.
    """
    if mode not in COMPILE_MODES:
        raise ValueError(f"compile_mode: expected one of {', '.join(COMPILE_MODES)}, got {mode!r}")
    if mode == "auto":
        mode = "graphs" if policy.dense and policy.can_be_recorded and policy.device.type == "cuda" else "off"
    if mode == "off":
        return add_gradients
    if not policy.dense:
        raise ValueError(f"compile_mode: {mode!r} needs a dense policy, got {type(policy).__name__}")
    if not policy.can_be_recorded:
        raise ValueError(f"compile_mode: the kernels of {type(policy).__name__} cannot be recorded")
    policy.decide = Graphed(policy.decide, policy)
    return GraphedGradients(add_gradients, policy, gradients=True)


class GraphedGradients(Graphed):
    """`add_gradients`, recorded."""

    def __call__(
        self, policy: SequencePolicy, batch: Batch, normalizer: Any, coefficients: Coefficients, *totals: Tensor
    ) -> Any:
        """As `add_gradients`, but the gradient replaces an earlier one."""
        return super().__call__(policy, batch, normalizer, _as_tensors(coefficients, policy.device), *totals)


@functools.lru_cache(maxsize=1)
def _as_tensors(coefficients: Coefficients, device: torch.device) -> Coefficients:
    """The coefficients of an update with tensors in place of the numbers that schedules change."""
    numbers: dict[str, Any] = coefficients._asdict()
    changing = {"clip_range", "ent_coef"}
    changing |= {"kickstart_coef"} if coefficients.kickstart_coef else set()
    changing |= {"motion_ent_scale"} if coefficients.motion_ent_scale != 1.0 else set()
    return Coefficients(**numbers | {name: torch.tensor(numbers[name], device=device) for name in changing})
