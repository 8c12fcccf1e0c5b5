"""Many policies of one shape in a single forward pass."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn import functional

from echelon_train.config.train import NetworkConfig
from echelon_train.policy import BattlePolicy, build_policy
from echelon_train.policy.distributions import environment_actions
from echelon_train.policy.encoders import SetEncoder
from echelon_train.policy.sequences import LstmState


class StackedPolicies:
    """Policies that act side by side, each for rows of its own.

    Their weights are stacked, and what one policy computes for its rows is mapped over the stack
    (`torch.func.vmap`): as many operations as a single policy takes, which are what takes the time with few rows.

    Parameters
    ----------
    network
        Shape of all of them.
    device
        Where they act.
    """

    def __init__(self, network: NetworkConfig, device: torch.device | str = "cpu") -> None:
        self.network = network
        self.device = torch.device(device)
        self._skeleton = _Step(build_policy(network, 0)).to("meta")
        self._weights: dict[str, Tensor] = {}
        self._mapped = vmap(self._step)

    def set_lanes(self, policies: Sequence[BattlePolicy]) -> None:
        """Choose the policy of every lane, one or more; a policy may have several. Copies their weights.

        Raises ValueError for no policy, and for one of another shape.
        """
        if not policies:
            raise ValueError("expected at least one policy")
        if any(policy.network != self.network for policy in policies):
            raise ValueError(f"expected policies of the shape {self.network}")
        states = {id(policy): _weights_of_the_actor(policy) for policy in policies}
        lanes = [states[id(policy)] for policy in policies]
        self._weights = {name: torch.stack([lane[name] for lane in lanes]).to(self.device) for name in lanes[0]}

    @property
    def num_lanes(self) -> int:
        """Lanes L, 0 before the first `set_lanes`."""
        return len(next(iter(self._weights.values()))) if self._weights else 0

    @torch.inference_mode()
    def act(self, observations: Tensor, state: LstmState, starts: Tensor, noise: Tensor) -> tuple[Tensor, LstmState]:
        """Sampled actions (L, n, A), and the next recurrent states.

        Parameters
        ----------
        observations
            (L, n, D) float32.
        state
            Hidden and cell state, (L, n, units) each.
        starts
            (L, n) float32: 1 where a row's episode begins.
        noise
            (L, n, RAW_DIM) standard normal numbers.
        """
        actions, hidden, cell = self._mapped(self._weights, observations, *state, starts, noise)
        return actions, (hidden, cell)

    def _step(self, weights: dict[str, Tensor], *arguments: Tensor) -> Any:
        return functional_call(self._skeleton, weights, arguments)


class _Step(nn.Module):
    """One decision of a policy, of operations that can be mapped over a stack of weights."""

    def __init__(self, policy: BattlePolicy) -> None:
        super().__init__()
        self.policy = copy.deepcopy(policy)
        self.policy._process_sequence = _cell  # type: ignore[method-assign, assignment]
        self.policy.set_training_mode(False)
        for module in self.policy.modules():
            if isinstance(module, SetEncoder):
                module.dense = True

    def forward(
        self, observations: Tensor, hidden: Tensor, cell: Tensor, starts: Tensor, noise: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Actions (n, A) and the next states (n, units) of a policy's rows."""
        distribution, (hidden, cell) = self.policy.get_distribution(observations, (hidden, cell), starts)
        return environment_actions(distribution.sample(noise)), hidden, cell


def _cell(features: Tensor, state: LstmState, starts: Tensor, lstm: nn.LSTM) -> tuple[Tensor, LstmState]:
    """A step of an LSTM of one layer, written out: the one of torch cannot be mapped."""
    begins = (starts > 0.5).unsqueeze(1)
    hidden, cell = (each.masked_fill(begins, 0.0) for each in state)
    weight_in, weight_back, bias_in, bias_back = lstm.all_weights[0]
    gates = functional.linear(features, weight_in, bias_in) + functional.linear(hidden, weight_back, bias_back)
    let_in, keep, new, let_out = gates.chunk(4, 1)
    cell = keep.sigmoid() * cell + let_in.sigmoid() * new.tanh()
    hidden = let_out.sigmoid() * cell.tanh()
    return hidden, (hidden, cell)


def _weights_of_the_actor(policy: BattlePolicy) -> dict[str, Tensor]:
    """The parameters and buffers that acting needs, as `_Step` names them."""
    critic = {id(parameter) for parameter in policy.critic_parameters()}
    named = {**dict(policy.named_parameters()), **dict(policy.named_buffers())}
    return {
        f"policy.{name}": tensor.detach()
        for name, tensor in named.items()
        if id(tensor) not in critic and not name.startswith("return_normalizer.")
    }
