"""Policies of one shape that act in a single forward pass, each in the battles that it plays."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn import functional

from echelon_env.networks.config import NetworkConfig
from echelon_train.policy import BattlePolicy, build_policy
from echelon_train.policy.encoders import SetEncoder
from echelon_train.policy.lstm import lstm_step
from echelon_train.policy.raw_actions import RAW_DIM, environment_actions
from echelon_train.policy.sequences import LstmState
from echelon_train.ppo.observations import Staging
from echelon_train.threads import torch_threads

SLOT_COST = 2
"""Fixed cost of a slot, in units of one battle: its weights are copied and read."""

Floats = NDArray[np.float32]


class StackedPolicies:
    """Policies that act at once, each on its own rows.

    Their weights are stacked, and the computation of one policy is mapped over the stack (`torch.func.vmap`). So there
    are as many operations as for a single policy, and with few rows it is the number of operations that takes time.

    Parameters
    ----------
    network
        Shape of all policies.
    device
        Device of the policies.
    """

    def __init__(self, network: NetworkConfig, device: torch.device | str = "cpu") -> None:
        self.network = network
        self.device = torch.device(device)
        self._skeleton = _Step(build_policy(network, 0)).to("meta")
        self._weights: dict[str, Tensor] = {}
        self._mapped = vmap(self._step)

    def set_slots(self, policies: Sequence[BattlePolicy]) -> None:
        """Choose the policy of every slot. A policy may have several slots. Copies the weights.

        Raises ValueError for no policy, and for a policy of another shape.
        """
        if not policies:
            raise ValueError("expected at least one policy")
        if any(policy.network != self.network for policy in policies):
            raise ValueError(f"expected policies of the shape {self.network}")
        states = {id(policy): _actor_weights(policy) for policy in policies}
        slots = [states[id(policy)] for policy in policies]
        self._weights = {name: torch.stack([slot[name] for slot in slots]).to(self.device) for name in slots[0]}

    @torch.inference_mode()
    def act(self, observations: Tensor, state: LstmState, starts: Tensor, noise: Tensor) -> tuple[Tensor, LstmState]:
        """Sampled actions (L, n, A) for L slots of n rows, and the next recurrent states.

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
    """One decision of a policy, made of operations that `vmap` supports."""

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
        """Actions (n, A) and next states (n, units) of the rows of one policy."""
        distribution, (hidden, cell) = self.policy.get_distribution(observations, (hidden, cell), starts)
        return environment_actions(distribution.sample(noise)), hidden, cell


def _cell(features: Tensor, state: LstmState, starts: Tensor, lstm: nn.LSTM) -> tuple[Tensor, LstmState]:
    """One step of a single-layer LSTM, written out because `vmap` does not support torch's."""
    weight_in, weight_back, bias_in, bias_back = lstm.all_weights[0]
    inputs, begins = functional.linear(features, weight_in, bias_in), (starts > 0.5).unsqueeze(1)
    hidden, cell = lstm_step(inputs, state, begins, weight_back, bias_back)
    return hidden, (hidden, cell)


def _actor_weights(policy: BattlePolicy) -> dict[str, Tensor]:
    """The parameters and buffers that acting needs, by their names in `_Step`."""
    critic = {id(parameter) for parameter in policy.critic_parameters()}
    named = {**dict(policy.named_parameters()), **dict(policy.named_buffers())}
    return {
        f"policy.{name}": tensor.detach()
        for name, tensor in named.items()
        if id(tensor) not in critic and not name.startswith("return_normalizer.")
    }


class PolicyBatch:
    """Policies of one shape in the battles that they play.

    The battles of a policy are put into slots of equal length, so that all slots act at once. Slots are padded with
    empty places, which compute the last row once more.
    """

    def __init__(self, network: NetworkConfig, battles: int, team: int, device: torch.device) -> None:
        self._team, self._rows = team, battles * team
        self.state = torch.zeros(2, self._rows, network.width, device=device)
        """Hidden and cell state (2, R, units)."""
        self._stacked = StackedPolicies(network, device)
        self._staging = Staging(device)
        self._slots: list[BattlePolicy] = []
        self._index = torch.zeros(0, 0, dtype=torch.int64)

    def forget(self, mask: NDArray[np.bool_]) -> None:
        """Clear the recurrent state of the rows that the mask (R,) selects."""
        self.state[:, torch.from_numpy(mask).to(self.state.device)] = 0.0

    def renew(self) -> None:
        """Copy the policies' weights again at the next `arrange`."""
        self._slots = []

    def arrange(self, policies: Sequence[BattlePolicy | None]) -> None:
        """Put the battles (B,) into slots. None marks a battle of another batch."""
        battles: dict[BattlePolicy, list[int]] = {}
        for battle, policy in enumerate(policies):
            if policy is not None:
                battles.setdefault(policy, []).append(battle)
        length = slot_length([len(own) for own in battles.values()])
        slots = [(each, own[i : i + length]) for each, own in battles.items() for i in range(0, len(own), length)]
        # an empty place has an index past the last battle
        places = np.full((len(slots), length), self._rows // self._team)
        for place, (_, own) in zip(places, slots, strict=True):
            place[: len(own)] = own
        rows = places[:, :, None] * self._team + np.arange(self._team)
        self._index = torch.from_numpy(np.minimum(rows, self._rows).reshape(len(slots), length * self._team))
        chosen = [policy for policy, _ in slots]
        if chosen and chosen != self._slots:
            self._stacked.set_slots(chosen)
        self._slots = chosen

    def act(self, observations: Floats, actions: Floats) -> None:
        """Write the actions of the batch's rows into `actions` (R, A), given all rows' observations (R, D)."""
        if not self._slots:
            return
        index, device = self._index, self.state.device
        noise = torch.randn(self._rows + 1, RAW_DIM)[index].to(device)  # belongs to the row, whichever slot it is in
        inside = index < self._rows
        seen = self._staging.to_device(torch.from_numpy(np.ascontiguousarray(observations, np.float32)))
        assert isinstance(seen, Tensor)
        places = index.clamp_max(self._rows - 1).to(device)
        there, state = seen[places], self.state[:, places]
        with torch_threads(1):
            acted, after = self._stacked.act(
                there, (state[0], state[1]), torch.zeros(index.shape, device=device), noise
            )
        rows = index[inside]
        self.state[:, rows.to(device)] = torch.stack(after)[:, inside.to(device)]
        actions[rows.numpy()] = acted.cpu()[inside].numpy()


def slot_length(battles: Sequence[int]) -> int:
    """Battles per slot that take the least time, given the number of battles of each policy."""

    def cost(length: int) -> int:
        return sum(-(-count // length) for count in battles) * (length + SLOT_COST)

    return min(range(1, max(battles, default=1) + 1), key=cost)
