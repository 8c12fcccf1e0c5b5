"""The state of an optimizer as tensors, which files can hold."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from echelon_env.networks.weights import CheckpointError
from echelon_train.policy.sequences import SequencePolicy


def optimizer_tensors(policy: SequencePolicy) -> dict[str, Tensor]:
    """The optimizer's state, named ``<parameter>.<key>``; empty for parameters that have never been updated."""
    state = policy.optimizer.state
    return {
        f"{name}.{key}": torch.as_tensor(value)
        for name, parameter in policy.named_parameters()
        for key, value in state.get(parameter, {}).items()
    }


def restore_optimizer(policy: SequencePolicy, tensors: Mapping[str, Tensor]) -> None:
    """Restore `optimizer_tensors` that `check_optimizer` has accepted, on the parameters' devices."""
    optimizer = policy.optimizer
    optimizer.state.clear()
    parameters = dict(policy.named_parameters())
    fused = any(group.get("fused") or group.get("capturable") for group in optimizer.param_groups)
    for name, tensor in tensors.items():
        owner, _, key = name.rpartition(".")
        # as in torch: only fused and capturable optimizers keep step counts on the parameters' device
        device = "cpu" if key == "step" and not fused else parameters[owner].device
        optimizer.state[parameters[owner]][key] = tensor.to(device, copy=True)


def check_optimizer(policy: SequencePolicy, tensors: Mapping[str, Tensor]) -> None:
    """Raise CheckpointError unless each parameter has all tensors of its optimizer state, or none."""
    parameters = dict(policy.named_parameters())
    expected = _parameter_state(policy.optimizer)
    owners = {name.rpartition(".")[0] for name in tensors}
    names = {f"{owner}.{key}" for owner in owners & parameters.keys() for key in expected}
    if names != tensors.keys():
        raise CheckpointError(
            f"training state: optimizer: missing or unknown: {', '.join(sorted(names ^ tensors.keys())[:4])}"
        )
    for name, tensor in tensors.items():
        owner, _, key = name.rpartition(".")
        like = parameters[owner] if expected[key].shape else expected[key]
        if tensor.shape != like.shape or tensor.dtype != like.dtype or not bool(torch.isfinite(tensor).all()):
            raise CheckpointError(
                f"training state: optimizer: {name!r}: expected finite {tuple(like.shape)} {like.dtype}, "
                f"got {tuple(tensor.shape)} {tensor.dtype}"
            )


def _parameter_state(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The state that such an optimizer has for a parameter of shape (1,) after its first update."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    parameter.grad = torch.zeros(1)
    group = {**optimizer.param_groups[0], "params": [parameter]}
    probe = type(optimizer)([group])  # type: ignore[call-arg]  # the group has its other arguments
    probe.step()
    return {key: torch.as_tensor(value) for key, value in probe.state[parameter].items()}
