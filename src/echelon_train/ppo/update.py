"""What an update of a policy computes: gradients of minibatches, steps of the optimizer, and normalised returns."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch
from torch import Tensor

from echelon_train.policy.sequences import SequencePolicy
from echelon_train.ppo import distributed
from echelon_train.ppo.buffer import Batch, ChunkBuffer
from echelon_train.ppo.cuda_graphs import Graphed
from echelon_train.ppo.losses import Coefficients, Losses, add_gradients
from echelon_train.ppo.normalize import normalize_advantages
from echelon_train.ppo.update_log import UpdateLog, rollout_metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class UpdateSettings:
    """Settings of an update beside those of the losses."""

    epochs: int
    chunks: int
    """Of a minibatch."""
    normalize_advantage: bool = True
    """Over the rollout's active samples."""
    critic_only: bool = False
    """Keep all parameters that the actor uses, as the critic's loss would change a shared trunk."""
    max_grad_norm: float
    kl_limit: float = math.inf
    """A minibatch with a larger KL divergence changes nothing, and ends the update."""


class Update:
    """Updates of a policy from rollouts, over all processes.

    Parameters
    ----------
    policy
        The policy.
    recorded
        Whether gradients and steps of a dense policy are recorded in CUDA graphs. Then nothing waits for the GPU. A
        step is recorded for an optimizer that can skip one on the device, as torch's fused ones can, and made by
        the CPU for others.
    parts
        Parts of a minibatch whose gradients are computed one after the other, not recorded.
    """

    def __init__(self, policy: SequencePolicy, recorded: bool, parts: int) -> None:
        self._policy, self._recorded = policy, recorded
        self.parts = parts
        """It is doubled when they do not fit the device's memory."""
        self._buffer: ChunkBuffer | None = None
        self._gradients: Graphed | None
        self._steps: Graphed | None
        self._advantages = torch.zeros(0)
        self._optimized: tuple[int, ...] = ()
        self._coefficients: Coefficients
        self._settings: UpdateSettings
        self._forget()

    def run(self, buffer: ChunkBuffer, coefficients: Coefficients, settings: UpdateSettings) -> UpdateLog:
        """Update the policy, and the normaliser of returns if there is one, from a full buffer."""
        self.begin(buffer, coefficients, settings)
        log = UpdateLog(self._policy.blocks, rollout_metrics(buffer), coefficients)
        minibatches = distributed.all_reduce_max(math.ceil(buffer.num_chunks / settings.chunks))
        for order in buffer.orders(settings.epochs):
            log.epochs += 1
            for chunks in order.tensor_split(minibatches):
                row = self._minibatch(chunks)
                log.add(chunks, row)
                if settings.kl_limit < math.inf and self._exceeds(row):
                    break
            else:
                continue
            break
        self._policy.optimizer.zero_grad()
        self._optimized = self._optimizer_tensors()
        return log

    def _exceeds(self, row: Tensor) -> bool:
        """Whether a minibatch that is finite has too large a KL divergence. It waits for the device."""
        losses, norm = Losses.unpacked(row[:-1].cpu()), float(row[-1])
        finite = math.isfinite(norm) and math.isfinite(losses.total)
        return finite and float(losses.approx_kl) > self._settings.kl_limit

    def _optimizer_tensors(self) -> tuple[int, ...]:
        """Which optimizer there is, and where its state lies."""
        optimizer = self._policy.optimizer
        tensors = (each for state in optimizer.state.values() for each in state.values() if isinstance(each, Tensor))
        return id(optimizer), *(each.data_ptr() for each in tensors)

    def release(self) -> None:
        """Free the recordings, and the memory that a rollout of another shape does not need."""
        self._buffer, self._advantages = None, torch.zeros(0)
        self._forget()

    def _forget(self) -> None:
        """Free all recordings."""
        self._gradients = self._steps = None
        if self._recorded:
            self._gradients = Graphed(self._add_gradient, self._policy, gradients=True)
            self._steps = Graphed(self._step_recorded, self._policy, harmless=_without_effect)

    def begin(self, buffer: ChunkBuffer, coefficients: Coefficients, settings: UpdateSettings) -> None:
        """Prepare for the minibatches of a full buffer."""
        policy, advantages = self._policy, buffer.advantages
        self._normalize_returns(buffer.returns)
        if settings.normalize_advantage:
            advantages = normalize_advantages(advantages, buffer.actor_mask)
        if buffer is not self._buffer:
            self._buffer, self._advantages = buffer, torch.empty_like(advantages)
            self._forget()  # recordings read the tensors of a buffer
        if self._optimizer_tensors() != self._optimized:
            self._forget()  # or a recorded step would write into the optimizer's state of before
        self._advantages.copy_(advantages)
        self._settings = settings
        self._coefficients = _as_tensors(coefficients, policy.device) if self._recorded else coefficients
        self._rates = [torch.full((), group["lr"], device=policy.device) for group in policy.optimizer.param_groups]

    def batch(self, chunks: Tensor) -> Batch:
        """The samples of a minibatch, (n,) int64 chunks on the device."""
        return self._rollout.batch(chunks, self._advantages)

    @property
    def _rollout(self) -> ChunkBuffer:
        assert self._buffer is not None
        return self._buffer

    def _minibatch(self, chunks: Tensor) -> Tensor:
        """Update the policy on a minibatch, unless its gradient is not finite or its KL divergence too large.

        Returns
        -------
        (8 + 2 blocks,) float32 on the device: the losses over all processes, `Losses.packed`, and the gradient's norm.
        """
        numbers = self.gradient(chunks)
        policy = self._policy
        if self._settings.critic_only:
            critic = {id(parameter) for parameter in policy.critic_parameters()}
            for parameter in policy.parameters():
                if id(parameter) not in critic:
                    parameter.grad = None
        return self._apply(numbers)

    def _apply(self, numbers: Tensor) -> Tensor:
        """Make the optimizer's step for a gradient, see `_minibatch`."""
        policy = self._policy
        if self._steps is not None and getattr(policy.optimizer, "_step_supports_amp_scaling", False):
            gradients = tuple(parameter.grad for parameter in policy.parameters())
            with torch.no_grad():
                row: Tensor = self._steps(numbers, gradients, tuple(self._rates), self._settings)
            return row.clone()
        row, applied = self._judge(numbers, self._settings)
        if bool(applied):
            policy.optimizer.step()
        return row

    def gradient(self, chunks: Tensor) -> Tensor:
        """Compute a minibatch's gradient and losses, summed over all processes. Returns `Losses.packed`."""
        totals = distributed.all_reduce_sum(self._rollout.sample_counts(chunks)).clamp_min(1.0)
        numbers = None
        while numbers is None:
            parts = min(self.parts, len(chunks))
            try:
                numbers = self._backward(chunks.tensor_split(parts), totals)
            except torch.OutOfMemoryError:
                if parts == len(chunks):
                    raise
                self.parts = 2 * parts
                self._forget()  # parts are not recorded, and the whole does not fit
            if numbers is None and self._policy.device.type == "cuda":
                torch.cuda.empty_cache()  # the failed attempt's memory is in pieces of other sizes
        return distributed.all_reduce_gradients(self._policy.parameters(), numbers)

    def _backward(self, parts: tuple[Tensor, ...], totals: Tensor) -> Tensor:
        """Compute the gradient of the parts of a minibatch; returns the sum of their losses, packed."""
        self._policy.optimizer.zero_grad()
        # a CUDA graph would write over the gradients of the part before
        compute = self._add_gradient if self._gradients is None or len(parts) > 1 else self._gradients
        rows = [compute(part, totals, self._coefficients, self._rollout.has_labels) for part in parts]
        return torch.stack(rows).sum(0)

    def _add_gradient(self, chunks: Tensor, totals: Tensor, coefficients: Coefficients, _labelled: bool) -> Tensor:
        """Add the gradient of chunks to the policy's; returns the losses, packed."""
        policy = self._policy
        return add_gradients(policy, self.batch(chunks), policy.return_normalizer, coefficients, *totals.unbind())

    def _judge(self, numbers: Tensor, settings: UpdateSettings) -> tuple[Tensor, Tensor]:
        """Clip the gradient; returns the row of `_minibatch`, and whether to make a step, () bool."""
        norm = torch.nn.utils.clip_grad_norm_(self._policy.parameters(), settings.max_grad_norm)
        losses = Losses.unpacked(numbers)
        applied = norm.isfinite() & losses.total.isfinite() & (losses.approx_kl <= settings.kl_limit)
        return torch.cat([numbers, norm.float().view(1)]), applied

    def _step_recorded(
        self, numbers: Tensor, gradients: tuple[Tensor | None, ...], rates: tuple[Tensor, ...], settings: UpdateSettings
    ) -> Tensor:
        """As `_judge` and a step, given gradients and learning rates. The optimizer skips the step itself."""
        optimizer: Any = self._policy.optimizer
        for parameter, gradient in zip(self._policy.parameters(), gradients, strict=True):
            parameter.grad = gradient
        row, applied = self._judge(numbers, settings)
        given = [group["lr"] for group in optimizer.param_groups]
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group.update(lr=rate, capturable=True)
        optimizer._warned_capturable_if_run_uncaptured = True  # the calls before a recording would warn
        optimizer.grad_scale, optimizer.found_inf = None, (~applied).float()
        try:
            optimizer.step()
        finally:
            del optimizer.grad_scale, optimizer.found_inf
            for group, rate in zip(optimizer.param_groups, given, strict=True):
                group["lr"] = rate
        return row

    def _normalize_returns(self, returns: Tensor) -> None:
        """Update the policy's normaliser of returns, if there is one, with those of all processes."""
        normalizer = self._policy.return_normalizer
        if normalizer is None:
            return
        exact = returns.double()
        sums = torch.stack([torch.full_like(exact[0, 0], exact.numel()), exact.sum(), (exact**2).sum()])
        count, total, squares = distributed.all_reduce_sum(sums).unbind()
        normalizer.update(total / count, squares / count, self._policy.value_net)


def _without_effect(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a step that is skipped."""
    numbers, *others = arguments
    return torch.full_like(numbers, torch.nan), *others


def _as_tensors(coefficients: Coefficients, device: torch.device) -> Coefficients:
    """The coefficients of an update with tensors in place of the numbers that schedules change."""
    numbers: dict[str, Any] = coefficients._asdict()
    changing = {"clip_range", "ent_coef"}
    changing |= {"kickstart_coef"} if coefficients.kickstart_coef else set()
    return Coefficients(**numbers | {name: torch.full((), numbers[name], device=device) for name in changing})
