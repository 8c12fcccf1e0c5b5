"""Orthogonal initialization: Saxe et al., "Exact solutions to the nonlinear dynamics of learning", 2014."""

from __future__ import annotations

import math

import torch
from torch import nn


def orthogonal(module: nn.Module, gain: float = math.sqrt(2.0)) -> None:
    """Set the weights of all layers to orthogonal matrices times `gain`, by default that for ReLU; biases to zero."""
    for layer in module.modules():
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            nn.init.orthogonal_(layer.weight, gain)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def orthogonal_lstm(lstm: nn.LSTM) -> None:
    """Set each gate's weights to an orthogonal matrix, the forget gate's bias to 1 and all other biases to zero.

    The forget bias of 1 makes the LSTM keep its state at first: Jozefowicz et al., "An Empirical Exploration of
    Recurrent Network Architectures", 2015.
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
