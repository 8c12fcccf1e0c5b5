"""The parts of an algorithm that can be recorded in CUDA graphs: a decision, and the losses of a minibatch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from echelon_train.config.ppo import COMPILE_MODES, CompileMode
from echelon_train.policy.sequences import SequencePolicy
from echelon_train.ppo.buffer import Batch
from echelon_train.ppo.cuda_graphs import Graphed
from echelon_train.ppo.losses import Coefficients, add_gradients


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
