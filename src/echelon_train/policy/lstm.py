"""A single-layer LSTM written out step by step, which starts episodes anywhere in a sequence."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


def lstm_step(
    inputs: Tensor, state: tuple[Tensor, Tensor], begins: Tensor, weight: Tensor, bias: Tensor
) -> tuple[Tensor, Tensor]:
    """One step of an LSTM.

    Parameters
    ----------
    inputs
        (n, 4 units): the input's part of the gates, with its bias.
    state
        Hidden and cell state, (n, units) each.
    begins
        (n, 1) bool: rows that start from zeros. A state that is not finite does not reach them.
    weight, bias
        (4 units, units) and (4 units,): those of the hidden state.

    Returns
    -------
    The next hidden and cell state, (n, units) each.
    """
    hidden, cell = (each.masked_fill(begins, 0.0) for each in state)
    gates = inputs + functional.linear(hidden, weight, bias)
    let_in, keep, new, let_out = gates.chunk(4, 1)
    cell = keep.sigmoid() * cell + let_in.sigmoid() * new.tanh()
    return let_out.sigmoid() * cell.tanh(), cell


def run_lstm(
    features: Tensor, state: tuple[Tensor, Tensor], starts: Tensor, lstm: nn.LSTM
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """An LSTM over sequences of equal length in which episodes may start at any step.

    torch's own LSTM needs sequences that are cut at these steps, and their number depends on the data.

    Parameters
    ----------
    features
        (L, n, F): L steps of n sequences.
    state
        Hidden and cell state before the first step, (1, n, units) each.
    starts
        (L, n) float32: 1 where an episode starts.
    lstm
        A single-layer LSTM.

    Returns
    -------
    Outputs (L, n, units), and the states (1, n, units) after the last step.
    """
    weight_in, weight_back, bias_in, bias_back = lstm.all_weights[0]
    inputs, begins = functional.linear(features, weight_in, bias_in), (starts > 0.5).unsqueeze(2)
    hidden, cell = state[0][0], state[1][0]
    outputs = []
    for step in range(len(features)):
        hidden, cell = lstm_step(inputs[step], (hidden, cell), begins[step], weight_back, bias_back)
        outputs.append(hidden)
    return torch.stack(outputs), (hidden.unsqueeze(0), cell.unsqueeze(0))


def run_dense(
    features: Tensor, states: tuple[Tensor, Tensor], starts: Tensor, lstm: nn.LSTM, living: Tensor, memory: bool
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """An LSTM over all rows, dead or not.

    Parameters
    ----------
    features
        (L * n, F), step after step.
    states, starts, lstm
        As for `run_lstm`.
    living
        (L * n,) bool.
    memory
        False: every step starts from zeros.

    Returns
    -------
    Outputs (L * n, units), zero for dead mechs, and the states after the last step, zero without memory and for mechs
    that are dead then.
    """
    if memory:
        output, after = run_lstm(features.view(*starts.shape, -1), states, starts, lstm)
    else:
        zeros = features.new_zeros(1, len(features), lstm.hidden_size)
        output, _ = run_lstm(features.unsqueeze(0), (zeros, zeros), zeros[..., 0], lstm)
        after = torch.zeros_like(states[0]), torch.zeros_like(states[1])
    last = living.view(len(starts), -1)[-1].view(1, -1, 1)
    hidden, cell = (torch.where(last, each, 0.0) for each in after)
    return torch.where(living.unsqueeze(1), output.view(len(features), -1), 0.0), (hidden, cell)
