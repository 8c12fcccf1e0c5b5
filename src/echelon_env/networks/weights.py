"""A policy's weights as arrays for the kernel: matrices (inputs, outputs), empty ones for what a network lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.schema import ConfigError
from echelon_env.layout.actions import TARGET_CHOICES
from echelon_env.layout.observations import OBSERVATION_DIM, STREAMS
from echelon_env.layout.parts import CHOICES
from echelon_env.networks.config import NetworkConfig
from echelon_env.networks.possible import mask_needs

Floats = NDArray[np.float32]

VECTORS = ("self", "objective")
TABLES = ("contacts", "squad", "intel", "comm")
"""Streams whose rows are an unordered set; the stream ``<name>_mask`` has 1 for each filled row."""

_SETS = {name: name if name == "contacts" else f"others.{name}" for name in TABLES}  # names of their encoders
_SIDE, _, _CELL = STREAMS["ego_map"].shape
_KERNEL = 3  # side of the kernel over the map
_PLACES = ((_SIDE - _KERNEL) // 2 + 1) ** 2


class CheckpointError(ConfigError):
    """A checkpoint is missing, damaged, of another version, or not a checkpoint."""


class SetWeights(NamedTuple):
    """The encoder of a set of rows with F features: an embedding of width S by a hidden layer of width H."""

    first: Floats  # (F, H)
    first_bias: Floats  # (H,)
    context: Floats  # (C, H) of the features of the set's owner; C is 0 if the embedding does not depend on them
    second: Floats  # (H, S)
    second_bias: Floats  # (S,)


class MapWeights(NamedTuple):
    """The encoder of a square map with F features a cell: a convolution of stride 2, then a layer of width W."""

    patch: Floats  # (k, k F, channels)
    patch_bias: Floats  # (channels,)
    dense: Floats  # (places * channels, W)
    dense_bias: Floats  # (W,)


class Network(NamedTuple):
    """All that acting needs."""

    contacts: SetWeights
    squad: SetWeights
    intel: SetWeights
    comm: SetWeights
    ego_map: MapWeights
    fusion: Floats  # (joined features, W): the observation itself for a flat encoder
    fusion_bias: Floats  # (W,)
    gain: Floats  # (W,) of the LayerNorm
    offset: Floats  # (W,)
    lstm_in: Floats  # (W, 4 W): input gate, forget gate, cell, output gate
    lstm_back: Floats  # (W, 4 W)
    lstm_bias: Floats  # (4 W,)
    memory: int  # 1: the LSTM continues from its state; 0: it starts every decision from zeros
    head: Floats  # (W, head)
    head_bias: Floats  # (head,)
    action: Floats  # (head, CHOICES), without the logits of targets if `query` has columns
    action_bias: Floats
    query: Floats  # (head, S): a contact's logit is its product with this query
    query_bias: Floats  # (S,)
    needs: NDArray[np.int64]  # (CHOICES,) see `mask_needs`


def tensor_shapes(config: NetworkConfig) -> dict[str, tuple[int, ...]]:
    """The shapes of the tensors that acting needs, float32, by the names of PyTorch's modules."""
    encoder, width, embedding = "features_extractor", config.width, config.set_width
    linear: dict[str, tuple[int, int]] = {}  # outputs and inputs
    joined = OBSERVATION_DIM
    shapes: dict[str, tuple[int, ...]] = {}
    if config.encoder == "sets":
        joined = sum(STREAMS[name].row_width for name in VECTORS)
        for name in TABLES:
            hidden = 2 * embedding if name == "contacts" else embedding
            linear[f"{encoder}.{_SETS[name]}.first"] = (hidden, STREAMS[name].row_width)
            linear[f"{encoder}.{_SETS[name]}.layers.1"] = (embedding, hidden)
            joined += 2 * embedding + 1
        shapes[f"{encoder}.contacts.context.weight"] = (2 * embedding, STREAMS["self"].row_width)
        shapes[f"{encoder}.map.layers.0.weight"] = (config.map_channels, _CELL, _KERNEL, _KERNEL)
        shapes[f"{encoder}.map.layers.0.bias"] = (config.map_channels,)
        linear[f"{encoder}.map.layers.3"] = (8 * config.map_channels, _PLACES * config.map_channels)
        joined += 8 * config.map_channels
        linear["target_query"] = (embedding, config.head)
    linear[f"{encoder}.fusion.0"] = (width, joined)
    linear["mlp_extractor.policy_net.0"] = (config.head, width)
    outputs = CHOICES - TARGET_CHOICES if config.encoder == "sets" else CHOICES
    linear["action_net"] = (outputs, config.head)
    for name, shape in linear.items():
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = shape, shape[:1]
    shapes |= dict.fromkeys([f"{encoder}.fusion.1.weight", f"{encoder}.fusion.1.bias"], (width,))
    shapes |= dict.fromkeys(["lstm_actor.weight_ih_l0", "lstm_actor.weight_hh_l0"], (4 * width, width))
    shapes |= dict.fromkeys(["lstm_actor.bias_ih_l0", "lstm_actor.bias_hh_l0"], (4 * width,))
    return shapes


@np.errstate(over="ignore")
def load_network(config: NetworkConfig, tensors: Mapping[str, NDArray[Any]]) -> Network:
    """A network from the tensors of a checkpoint, `tensor_shapes`. Others, those of the critic, are ignored.

    Raises CheckpointError if one is missing, has another shape or dtype, or leads to numbers that are not finite.
    """
    for name, shape in tensor_shapes(config).items():
        if (found := tensors.get(name)) is None:
            raise CheckpointError(f"weights: {name!r} is missing")
        if found.shape != shape or found.dtype != np.float32:
            raise CheckpointError(f"weights: {name!r}: expected {shape} float32, got {found.shape} {found.dtype}")
    sets = config.encoder == "sets"
    query = np.zeros((config.head, 0), np.float32), np.zeros(0, np.float32)
    layers: dict[str, Any] = {
        **_linear("fusion", tensors, "features_extractor.fusion.0"),
        "gain": tensors["features_extractor.fusion.1.weight"],
        "offset": tensors["features_extractor.fusion.1.bias"],
        "lstm_in": tensors["lstm_actor.weight_ih_l0"].T,
        "lstm_back": tensors["lstm_actor.weight_hh_l0"].T,
        "lstm_bias": tensors["lstm_actor.bias_ih_l0"] + tensors["lstm_actor.bias_hh_l0"],
        **_linear("head", tensors, "mlp_extractor.policy_net.0"),
        **_linear("action", tensors, "action_net"),
        **(_linear("query", tensors, "target_query") if sets else {"query": query[0], "query_bias": query[1]}),
    }
    streams: dict[str, Any] = {
        **{name: _set_weights(tensors, name) if sets else _NO_SET for name in TABLES},
        "ego_map": _map_weights(tensors) if sets else _NO_MAP,
    }
    network = Network(
        **streams | {name: np.array(layer, order="C") for name, layer in layers.items()},
        memory=int(config.memory),
        needs=mask_needs(config.blocks_off),
    )
    if not np.isfinite(network.lstm_bias).all():
        raise CheckpointError("weights: 'lstm_bias' is not finite in float32")
    return network


def _linear(field: str, tensors: Mapping[str, NDArray[Any]], name: str) -> dict[str, Any]:
    """The transposed weight of a linear layer as `field`, and its bias as `field`_bias."""
    return {field: tensors[f"{name}.weight"].T, f"{field}_bias": tensors[f"{name}.bias"]}


def _set_weights(tensors: Mapping[str, NDArray[Any]], name: str) -> SetWeights:
    at = f"features_extractor.{_SETS[name]}"
    arrays = _linear("first", tensors, f"{at}.first") | _linear("second", tensors, f"{at}.layers.1")
    arrays["context"] = np.zeros((0, arrays["first"].shape[1]), np.float32)
    if name == "contacts":
        arrays["context"] = tensors[f"{at}.context.weight"].T
    return SetWeights(**{field: np.array(array, order="C") for field, array in arrays.items()})


def _map_weights(tensors: Mapping[str, NDArray[Any]]) -> MapWeights:
    at = "features_extractor.map.layers"
    patch, dense = tensors[f"{at}.0.weight"].transpose(2, 3, 1, 0), tensors[f"{at}.3.weight"]
    channels = patch.shape[-1]
    dense = dense.reshape(len(dense), channels, _PLACES).transpose(2, 1, 0)  # as the kernel orders the places
    return MapWeights(
        patch=np.array(patch, order="C").reshape(_KERNEL, _KERNEL * _CELL, channels),
        patch_bias=tensors[f"{at}.0.bias"].copy(),
        dense=np.array(dense, order="C").reshape(_PLACES * channels, -1),
        dense_bias=tensors[f"{at}.3.bias"].copy(),
    )


_NO_SET = SetWeights(*(np.zeros((0,) * axes, np.float32) for axes in (2, 1, 2, 2, 1)))
_NO_MAP = MapWeights(*(np.zeros((0,) * axes, np.float32) for axes in (3, 1, 2, 1)))
