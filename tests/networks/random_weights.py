"""Players with random weights, without PyTorch."""

import numpy as np

from echelon_env.evaluate import Player
from echelon_env.evaluate.networks import network_player
from echelon_env.networks.config import NetworkConfig
from echelon_env.networks.weights import tensor_shapes


def random_player(config: NetworkConfig, seed: int = 0) -> Player:
    """A player whose layers all change its actions."""
    rng = np.random.default_rng(seed)
    tensors = {
        name: rng.normal(0.0, 2.0 / np.sqrt(shape[-1]), shape).astype(np.float32)
        for name, shape in tensor_shapes(config).items()
    }
    return network_player("random weights", config, tensors)
