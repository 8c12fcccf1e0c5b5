"""Layers as kernels, in float64: the order of a sum depends on the row's inputs only, so its bits do, too."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echelon_env.engine.geometry import hyperbolic_tangent, log1p, sigmoid
from echelon_env.engine.kernels import integer, kernel, shared_kernel
from echelon_env.layout.observations import OBSERVATION_DIM, STREAMS
from echelon_env.networks.possible import CONDITIONS
from echelon_env.networks.weights import TABLES, MapWeights, Network, SetWeights

ZERO = 0.0
NORM_EPSILON = 1e-5  # PyTorch's


class Workspace(NamedTuple):
    """Arrays that the forward pass of one row uses."""

    seen: NDArray[np.float64]  # (D,) the observation
    context: NDArray[np.float64]  # (H,) the part of a hidden layer that all rows of a set share
    hidden: NDArray[np.float64]  # (H,)
    rows: NDArray[np.float64]  # (most rows of a table * S,) the embedded rows of a set
    contacts: NDArray[np.float64]  # (contact rows * S,) those of contacts
    places: NDArray[np.float64]  # (places * channels,) of the map
    joined: NDArray[np.float64]  # the encoded streams
    features: NDArray[np.float64]  # (W,)
    gates: NDArray[np.float64]  # (4 W,)
    head: NDArray[np.float64]
    query: NDArray[np.float64]  # (S,)
    output: NDArray[np.float64]  # of the action layer
    conditions: NDArray[np.bool_]  # (CONDITIONS,)
    used: NDArray[np.int64]  # indices of a layer's inputs


def allocate_workspace(network: Network) -> Workspace:
    """Arrays for one thread."""
    hidden, rows = network.contacts.first_bias.size, network.contacts.second_bias.size
    places = network.ego_map.dense.shape[0]
    widths = {
        "seen": OBSERVATION_DIM,
        "context": hidden,
        "hidden": hidden,
        "rows": max(STREAMS[name].rows for name in TABLES) * rows,
        "contacts": STREAMS["contacts"].rows * rows,
        "places": places,
        "joined": network.fusion.shape[0],
        "features": network.fusion_bias.size,
        "gates": network.lstm_bias.size,
        "head": network.head_bias.size,
        "query": network.query_bias.size,
        "output": network.action_bias.size,
    }
    most = max(OBSERVATION_DIM, places, network.fusion.shape[0], hidden, network.gain.size, network.head_bias.size)
    return Workspace(
        **{name: np.zeros(width) for name, width in widths.items()},
        conditions=np.zeros(CONDITIONS, np.bool_),
        used=np.zeros(most, np.int64),
    )


@shared_kernel
def add_product(x: Any, weights: Any, out: Any, used: Any) -> None:
    """Add the product of the inputs and the weights (inputs, outputs) to the outputs.

    Inputs that are 0 are left out. Four at a time are faster and more exact than one.
    """
    found = integer(0)
    for i in range(weights.shape[0]):
        if x[i] != ZERO:
            used[found] = i
            found += 1
    at = integer(0)
    while at + 4 <= found:
        a, b, c, d = used[at], used[at + 1], used[at + 2], used[at + 3]
        xa, xb, xc, xd = x[a], x[b], x[c], x[d]
        for o in range(weights.shape[1]):
            out[o] += (xa * weights[a, o] + xb * weights[b, o]) + (xc * weights[c, o] + xd * weights[d, o])
        at += 4
    while at < found:
        a = used[at]
        xa = x[a]
        for o in range(weights.shape[1]):
            out[o] += xa * weights[a, o]
        at += 1


@kernel
def copy(values: Any, out: Any) -> None:
    """Write as many values as `out` has entries."""
    for o in range(out.shape[0]):
        out[o] = values[o]


@kernel
def linear(x: Any, weights: Any, bias: Any, out: Any, used: Any) -> None:
    """A linear layer."""
    copy(bias, out)
    add_product(x, weights, out, used)


@kernel
def rectify(values: Any) -> None:
    """ReLU, in place."""
    for o in range(values.shape[0]):
        values[o] = max(values[o], ZERO)


@shared_kernel
def encode_set(weights: SetWeights, table: int, mask: int, rows: int, embedded: Any, out: Any, work: Workspace) -> None:
    """Encode a table's rows as their maximum, their mean and log(1 + number): (2 S + 1,).

    `table` and `mask` are the columns of the observation where the table and its mask begin. The embeddings of the rows
    are written to `embedded`, zeros for empty rows.
    """
    inputs, units = weights.first.shape
    width = weights.second.shape[1]
    hidden = work.hidden[:units]
    out[:] = ZERO
    linear(work.seen, weights.context, weights.first_bias, work.context[:units], work.used)
    count = 0
    for r in range(rows):
        row = embedded[r * width : (r + 1) * width]
        row[:] = ZERO
        if work.seen[mask + r] > 0.5:
            count += 1
            features = work.seen[table + r * inputs : table + (r + 1) * inputs]
            linear(features, weights.first, work.context, hidden, work.used)
            rectify(hidden)
            linear(hidden, weights.second, weights.second_bias, row, work.used)
            rectify(row)
            for o in range(width):
                out[o] = max(out[o], row[o])
                out[width + o] += row[o]
    for o in range(width):
        out[width + o] /= max(count, 1)
    out[2 * width] = log1p(count)


@shared_kernel
def encode_map(weights: MapWeights, cells: Any, side: int, out: Any, work: Workspace) -> None:
    """Encode a square map's cells, row by row, by a convolution of stride 2 and a linear layer."""
    rows, row_width, channels = weights.patch.shape
    width = row_width // rows
    across = (side - rows) // 2 + 1
    places = work.places[: weights.dense.shape[0]]
    for y in range(across):
        for x in range(across):
            to = (y * across + x) * channels
            place = places[to : to + channels]
            copy(weights.patch_bias, place)
            for k in range(rows):
                first = ((2 * y + k) * side + 2 * x) * width
                add_product(cells[first : first + row_width], weights.patch[k], place, work.used)
    rectify(places)
    linear(places, weights.dense, weights.dense_bias, out, work.used)
    rectify(out)


@shared_kernel
def fuse(network: Network, inputs: Any, work: Workspace) -> None:
    """Linear layer, LayerNorm (Ba, Kiros and Hinton 2016) and ReLU of the encoded streams: the features."""
    features, width = work.features, network.fusion.shape[1]
    linear(inputs, network.fusion, network.fusion_bias, features, work.used)
    mean, variance = 0.0, 0.0
    for o in range(width):
        mean += features[o]
    mean /= width
    for o in range(width):
        variance += (features[o] - mean) * (features[o] - mean)
    deviation = math.sqrt(variance / width + NORM_EPSILON)
    for o in range(width):
        features[o] = (features[o] - mean) / deviation * network.gain[o] + network.offset[o]
    rectify(features)


@kernel
def recur(network: Network, memory: Any, work: Workspace) -> None:
    """The LSTM's step (Hochreiter and Schmidhuber 1997): adds its output to the features.

    `memory` (2, W) has the hidden and the cell state. A network without memory takes them for zeros.
    """
    gates, width = work.gates, network.fusion.shape[1]
    if not network.memory:
        memory[:, :] = ZERO
    linear(work.features, network.lstm_in, network.lstm_bias, gates, work.used)
    add_product(memory[0], network.lstm_back, gates, work.used)
    for o in range(width):
        let_in, keep = sigmoid(gates[o]), sigmoid(gates[width + o])
        new, let_out = hyperbolic_tangent(gates[2 * width + o]), sigmoid(gates[3 * width + o])
        cell = keep * memory[1, o] + let_in * new
        memory[1, o] = cell
        memory[0, o] = let_out * hyperbolic_tangent(cell)
        work.features[o] += memory[0, o]
