"""Policies of one shape that act in a single forward pass, each in the battles that it plays."""

from __future__ import annotations

import copy
import itertools
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
from echelon_train.ppo.cuda_graphs import Graphed
from echelon_train.ppo.observations import Staging
from echelon_train.threads import torch_threads

SLOT_COST = 2
"""Fixed cost of a slot, in units of one battle: its weights are copied and read."""

RECORDED_SLOTS = 16
"""Slots, where decisions are recorded, of a single policy that plays all battles, if there are so many battles."""

RECORDED_STEP = 8
"""Where decisions are recorded, the number of slots is a multiple of this."""

Floats = NDArray[np.float32]


class StackedPolicies:
    """Policies that act at once, each on its own rows.

    Their weights are stacked in slots, and the computation of one policy is mapped over the stack (`torch.func.vmap`).
    So there are as many operations as for a single policy, and with few rows it is the number of operations that takes
    time.

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
        policy = build_policy(network, 0)
        self._kinds = {name: (tensor.shape, tensor.dtype) for name, tensor in _actor_weights(policy).items()}
        self._skeleton = _Step(policy).to("meta")
        self._weights: dict[str, Tensor] = {}
        self._mapped = vmap(self._step)

    def allocate(self, slots: int) -> None:
        """Make a number of slots, with zeros for weights."""
        self._weights = {
            name: torch.zeros(slots, *shape, dtype=dtype, device=self.device)
            for name, (shape, dtype) in self._kinds.items()
        }

    def load(self, slots: Sequence[int], policy: BattlePolicy) -> None:
        """Copy a policy's weights into slots. Raises ValueError for a policy of another shape."""
        if policy.network != self.network:
            raise ValueError(f"expected a policy of the shape {self.network}, got {policy.network}")
        chosen = torch.tensor(slots, device=self.device)
        for name, tensor in _actor_weights(policy).items():
            self._weights[name][chosen] = tensor.to(self.device)

    def parameters(self) -> list[nn.Parameter]:
        """None that are trained."""
        return []

    def buffers(self) -> list[Tensor]:
        """The stacked weights."""
        return list(self._weights.values())

    def recorded_settings(self) -> None:
        """Nothing else changes."""

    def act(self, observations: Tensor, state: LstmState, noise: Tensor) -> tuple[Tensor, LstmState]:
        """Sampled actions (L, n, A) for L slots of n rows, and the next recurrent states.

        Parameters
        ----------
        observations
            (L, n, D) float32.
        state
            Hidden and cell state, (L, n, units) each; zeros where a row's episode begins.
        noise
            (L, n, RAW_DIM) standard normal numbers.
        """
        actions, hidden, cell = self._mapped(self._weights, observations, *state, noise)
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
        self, observations: Tensor, hidden: Tensor, cell: Tensor, noise: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Actions (n, A) and next states (n, units) of the rows of one policy."""
        starts = torch.zeros_like(observations[:, 0])
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
    empty places, whose results are not used.

    Decisions that are recorded in a CUDA graph need slots of the same number and length whichever policies play: they
    are short, their number only grows, and a policy keeps its own where it can.

    Parameters
    ----------
    network
        Shape of the policies.
    battles, team
        Number of battles B, and of mechs that a policy controls in each.
    device
        Device of the policies.
    recorded
        Whether the kernels of decisions are recorded and replayed. On the CPU slots are then only laid out so.
    """

    def __init__(
        self, network: NetworkConfig, battles: int, team: int, device: torch.device, recorded: bool = False
    ) -> None:
        self._battles, self._team, self._recorded = battles, team, recorded
        self._state = torch.zeros(2, battles * team + 1, network.width, device=device)  # the last row: empty places'
        self._stacked = StackedPolicies(network, device)
        self._compute = Graphed(self._act, self._stacked) if recorded else self._act
        self._staging = Staging(device)
        self._slots: list[BattlePolicy | None] = []  # whose weights each has
        self._index = torch.zeros(0, 0, dtype=torch.int64, device=device)  # (L, n): the row of every place
        self._own = np.zeros(0, np.int64)  # (n,): the rows of the batch, in the order of the places

    @property
    def state(self) -> Tensor:
        """Hidden and cell state (2, R, units), a view."""
        return self._state[:, :-1]

    def forget(self, mask: NDArray[np.bool_]) -> None:
        """Clear the recurrent state of the rows that the mask (R,) selects."""
        self._state.index_fill_(1, torch.from_numpy(np.flatnonzero(mask)).to(self._state.device), 0.0)

    def renew(self) -> None:
        """Copy the policies' weights again at the next `arrange`."""
        self._slots = [None] * len(self._slots)

    def clear(self) -> None:
        """Clear all recurrent states, and forget the policies; recordings are kept."""
        self._state.zero_()
        self.arrange([None] * self._battles)

    def arrange(self, policies: Sequence[BattlePolicy | None]) -> None:
        """Put the battles (B,) into slots. None marks a battle of another batch.

        Raises ValueError for a policy of another shape.
        """
        battles: dict[BattlePolicy, list[int]] = {}
        for battle, policy in enumerate(policies):
            if policy is not None:
                battles.setdefault(policy, []).append(battle)
        counts = [len(own) for own in battles.values()]
        length = -(-self._battles // RECORDED_SLOTS) if self._recorded else slot_length(counts)
        parts = [(each, own[i : i + length]) for each, own in battles.items() for i in range(0, len(own), length)]
        chosen = self._load([policy for policy, _ in parts])
        places = np.full((len(self._slots), length), self._battles)
        for slot, (_, own) in zip(chosen, parts, strict=True):
            places[slot, : len(own)] = own
        rows = places[:, :, None] * self._team + np.arange(self._team)
        rows = np.minimum(rows, self._battles * self._team).reshape(len(places), length * self._team)
        self._index = torch.from_numpy(rows).to(self._state.device)
        self._own = rows[rows < self._battles * self._team]

    def _load(self, policies: Sequence[BattlePolicy]) -> list[int]:
        """A slot for each of the policies, with its weights."""
        wanted = len(policies)
        if self._recorded:  # never fewer than before: every number is recorded
            wanted = max(len(self._slots), RECORDED_STEP * -(-wanted // RECORDED_STEP))
        if wanted != len(self._slots):
            self._stacked.allocate(wanted)
            self._slots = [None] * wanted
        playing = set(policies)
        self._slots = [each if each in playing else None for each in self._slots]  # others may change meanwhile
        chosen = kept_places(self._slots, policies) if self._recorded else list(range(wanted))
        missing: dict[BattlePolicy, list[int]] = {}
        for slot, policy in zip(chosen, policies, strict=True):
            if self._slots[slot] is not policy:
                missing.setdefault(policy, []).append(slot)
                self._slots[slot] = policy
        for policy, slots in missing.items():
            self._stacked.load(slots, policy)
        return chosen

    def act(self, observations: Floats, actions: Floats) -> None:
        """Write the actions of the batch's rows into `actions` (R, A) float32, given all rows' observations (R, D)."""
        if not len(self._own):
            return
        noise = torch.randn(len(observations) + 1, RAW_DIM)  # belongs to the row, whichever slot it is in
        seen = torch.from_numpy(np.ascontiguousarray(observations, np.float32))
        given = self._staging.to_device({"seen": seen, "noise": noise})
        assert isinstance(given, dict)
        with torch.inference_mode(), torch_threads(1):
            acted, after = self._compute(given["seen"], self._state, self._index, given["noise"])
            acted = acted.cpu().numpy()
        self._state.copy_(after)
        actions[self._own] = acted[self._own]

    def _act(self, seen: Tensor, state: Tensor, index: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Actions (R + 1, A) and the next states (2, R + 1, units) of the rows `index` (L, n) of L slots, others' kept.

        Given observations (R, D), states (2, R + 1, units) and noise (R + 1, RAW_DIM).
        """
        there, before = seen[index.clamp_max(len(seen) - 1)], state[:, index]
        acted, after = self._stacked.act(there, (before[0], before[1]), noise[index])
        actions = acted.new_zeros(len(noise), acted.shape[2]).index_copy(0, index.flatten(), acted.flatten(0, 1))
        return actions, state.index_copy(1, index.flatten(), torch.stack(after).flatten(1, 2))


def slot_length(battles: Sequence[int]) -> int:
    """Battles per slot that take the least time, given the number of battles of each policy."""

    def cost(length: int) -> int:
        return sum(-(-count // length) for count in battles) * (length + SLOT_COST)

    return min(range(1, max(battles, default=1) + 1), key=cost)


def kept_places(present: Sequence[object], wanted: Sequence[object]) -> list[int]:
    """Different places for all that is wanted: those that it has at present, where possible. There must be enough."""
    free: dict[int, list[int]] = {}  # places by what they have
    for place, each in enumerate(present):
        free.setdefault(id(each), []).append(place)
    chosen = [free[id(each)].pop(0) if free.get(id(each)) else None for each in wanted]
    others = itertools.chain.from_iterable(free.values())
    return [next(others) if place is None else place for place in chosen]
