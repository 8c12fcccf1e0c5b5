"""Reading and checking tensors from untrusted files, which cannot run code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from echelon_env.networks.weights import CheckpointError
from echelon_env.storage.reading import parse_json

MODEL_FORMAT = "echelon-model-6"
"""The key of the description in the header of a saved model: a file of `EchelonRecurrentPPO.save`, or the training
state of a checkpoint."""


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    """A module's parameters and buffers by name, detached; tensors shared by submodules appear once."""
    return {name: tensor.detach() for name, tensor in (*module.named_parameters(), *module.named_buffers())}


def part_of(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names start with `prefix`, by their names without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def parse_tensors(data: bytes, path: Path) -> dict[str, Tensor]:
    """Parse the bytes of a safetensors file. Raises CheckpointError if they are invalid."""
    try:
        tensors: dict[str, Tensor] = safetensors.torch.load(data)
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise CheckpointError(f"{path}: not a valid safetensors file ({error})") from error
    return tensors


def model_bytes(tensors: Mapping[str, Tensor], description: str) -> bytes:
    """The bytes of a saved model: a safetensors file of the tensors, with a JSON description in its header."""
    kept = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    return safetensors.torch.save(kept, {MODEL_FORMAT: description})


def parse_model(data: bytes, path: Path) -> tuple[dict[str, Tensor], str]:
    """The tensors and the description of `model_bytes`. Raises CheckpointError for other bytes."""
    tensors = parse_tensors(data, path)  # checks the header, too
    try:
        header = parse_json(data[8 : 8 + int.from_bytes(data[:8], "little")])
    except ValueError as error:
        raise CheckpointError(f"{path}: its header is invalid ({error})") from error
    description = (header.get("__metadata__") or {}).get(MODEL_FORMAT)
    if description is None:
        raise CheckpointError(f"{path}: not a model of this release of Echelon (no {MODEL_FORMAT!r} in its header)")
    return tensors, description


def check_finite(weights: Mapping[str, Tensor]) -> None:
    """Raise CheckpointError if a weight is not finite."""
    for name, tensor in weights.items():
        if not torch.isfinite(tensor).all():
            raise CheckpointError(f"weights: {name!r} holds values that are not finite")


def check_shapes(module: nn.Module, weights: Mapping[str, Tensor], path: Path) -> None:
    """Raise CheckpointError unless a file's weights have the names, shapes and dtypes of a module."""
    expected = weights_of(module)
    if weights.keys() != expected.keys():
        names = sorted(weights.keys() ^ expected.keys())
        raise CheckpointError(f"{path}: missing or unknown tensors: {', '.join(names[:4])}")
    for name, tensor in expected.items():
        if weights[name].shape != tensor.shape or weights[name].dtype != tensor.dtype:
            raise CheckpointError(
                f"{path}: {name!r}: expected {tuple(tensor.shape)} {tensor.dtype}, "
                f"got {tuple(weights[name].shape)} {weights[name].dtype}"
            )
