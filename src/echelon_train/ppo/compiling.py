"""The parts of an algorithm that can be compiled or recorded: a decision, and the losses of a minibatch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from torch import Tensor

from echelon_train.config.ppo import COMPILE_MODES, CompileMode
from echelon_train.policy.sequences import SequencePolicy
from echelon_train.policy.tables import TABLES
from echelon_train.ppo.buffer import Batch
from echelon_train.ppo.cuda_graphs import Graphed
from echelon_train.ppo.losses import Coefficients, add_gradients, losses

RECOMPILE_LIMIT = 64
"""Graphs of a function, one more of which ends the run. Torch's 8 are too few for the stages of a curriculum."""


def compiled(policy: SequencePolicy, mode: CompileMode) -> Callable[..., Tensor]:
    """Compile or record the decisions of a dense policy, and return such a version of `add_gradients`.

    ``auto`` is for a policy on CUDA that can be recorded ``graphs``, else ``off``. The policy's weights may change
    later, its settings may not if they are compiled. Raises ValueError for a policy that is not dense or cannot be
    recorded, if that is needed, and for another mode.
    """
    if mode not in COMPILE_MODES:
        raise ValueError(f"compile_mode: expected one of {', '.join(COMPILE_MODES)}, got {mode!r}")
    if mode == "auto":
        mode = "graphs" if policy.dense and policy.can_be_recorded and policy.device.type == "cuda" else "off"
    if mode == "off":
        return add_gradients
    if not policy.dense:
        raise ValueError(f"compile_mode: {mode!r} needs a dense policy, got {type(policy).__name__}")
    if mode == "graphs":
        if not policy.can_be_recorded:
            raise ValueError(f"compile_mode: the kernels of {type(policy).__name__} cannot be recorded")
        policy.decide = Graphed(policy.decide, policy)
        return GraphedGradients(add_gradients, policy, gradients=True)
    _prepare()
    _compile_decisions(policy, mode)
    compute = _compile(losses, mode)

    def with_tensors(
        policy: SequencePolicy, batch: Batch, normalizer: Any, coefficients: Coefficients, *totals: Tensor
    ) -> Tensor:
        changing = _as_tensors(coefficients, policy.device)
        return add_gradients(policy, batch, normalizer, changing, *totals, compute=compute)

    return with_tensors


class GraphedGradients(Graphed):
    """`add_gradients`, recorded."""

    def __call__(
        self, policy: SequencePolicy, batch: Batch, normalizer: Any, coefficients: Coefficients, *totals: Tensor
    ) -> Any:
        """As `add_gradients`, but the gradient replaces an earlier one."""
        return super().__call__(policy, batch, normalizer, _as_tensors(coefficients, policy.device), *totals)


def _prepare() -> None:
    """Set torch's compiler up."""
    torch._dynamo.config.allow_rnn = True  # an LSTM's weights are read; the LSTM itself is not called
    torch._dynamo.config.recompile_limit = max(RECOMPILE_LIMIT, torch._dynamo.config.recompile_limit)
    for table in TABLES:
        # else the graph makes the table, on the CPU
        torch.compiler.assume_constant_result(table)  # type: ignore[no-untyped-call]


@functools.lru_cache(maxsize=1)
def _as_tensors(coefficients: Coefficients, device: torch.device) -> Coefficients:
    """The coefficients of an update with tensors in place of the numbers that schedules change."""
    numbers: dict[str, Any] = coefficients._asdict()
    changing = {"clip_range", "ent_coef"}
    changing |= {"clip_range_vf"} if coefficients.clip_range_vf is not None else set()
    changing |= {"kickstart_coef"} if coefficients.kickstart_coef else set()
    changing |= {"motion_ent_scale"} if coefficients.motion_ent_scale != 1.0 else set()
    return Coefficients(**numbers | {name: torch.tensor(numbers[name], device=device) for name in changing})


def _compile_decisions(policy: Any, mode: CompileMode) -> None:
    decide = _compile(policy.decide, mode)

    def cloned(*arguments: Any) -> Any:
        # a CUDA graph writes its results into the same memory every time
        actions, values, log_probs, (actor, critic) = decide(*arguments)
        states = (tuple(each.clone() for each in pair) for pair in (actor, critic))
        return actions, values, log_probs, RNNStates(*states)

    policy.decide = cloned if mode == "reduce-overhead" else decide


def _compile(function: Callable[..., Any], mode: CompileMode) -> Any:
    # one graph for each shape, such as that of a smaller last minibatch, and for the losses that count at present
    return torch.compile(function, fullgraph=True, dynamic=False, mode=None if mode == "default" else mode)
