"""Orthogonal weights to begin with: Saxe et al., "Exact solutions to the nonlinear dynamics of learning", 2014."""

from __future__ import annotations

import torch
from torch import nn


def orthogonal(layer: nn.Linear, gain: float) -> None:
    """Make a layer's weight orthogonal, times a gain, and its bias zero."""
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)


def orthogonal_lstm(lstm: nn.LSTM) -> None:
    """Make weights orthogonal gate by gate, and biases zero but for the forget gate's, 1: it begins by keeping.

    Jozefowicz et al., "An Empirical Exploration of Recurrent Network Architectures", 2015, has that bias.
    """
    units = lstm.hidden_size
    with torch.no_grad():
        for name, parameter in lstm.named_parameters():
            if name.startswith("weight"):
                for gate in torch.split(parameter, units):
                    nn.init.orthogonal_(gate)
            else:
                nn.init.zeros_(parameter)
                if name.startswith("bias_ih"):
                    parameter[units : 2 * units] = 1.0
