"""Policies of one kind that act in a single forward pass, each in the battles that it plays."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, vmap

from echelon_train.opponents.actor import Actor, Step
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
    """Policies of one kind that act at once, each on its own rows.

    Their weights are stacked in slots, and the computation of one policy is mapped over the stack (`torch.func.vmap`).
    So there are as many operations as for a single policy, and with few rows it is the number of operations that takes
    time.

    Parameters
    ----------
    actor
        One of the policies.
    device
        Device of the policies.
    """

    def __init__(self, actor: Actor, device: torch.device | str = "cpu") -> None:
        self.kind, self.device = actor.kind, torch.device(device)
        self._kinds = {name: (tensor.shape, tensor.dtype) for name, tensor in actor.weights().items()}
        self._skeleton = Step(actor).to("meta")
        self._weights: dict[str, Tensor] = {}
        self._mapped = vmap(self._step)

    def allocate(self, slots: int) -> None:
        """Make a number of slots, with zeros for weights."""
        self._weights = {
            name: torch.zeros(slots, *shape, dtype=dtype, device=self.device)
            for name, (shape, dtype) in self._kinds.items()
        }

    def load(self, slots: Sequence[int], actor: Actor) -> None:
        """Copy a policy's weights into slots. Raises ValueError for a policy of another kind."""
        if actor.kind != self.kind:
            raise ValueError(f"expected a policy of the kind {self.kind}, got {actor.kind}")
        chosen = torch.tensor(slots, device=self.device)
        for name, tensor in actor.weights().items():
            self._weights[name][chosen] = tensor.to(self.device)

    def parameters(self) -> list[nn.Parameter]:
        """None that are trained."""
        return []

    def buffers(self) -> list[Tensor]:
        """The stacked weights."""
        return list(self._weights.values())

    def recorded_settings(self) -> None:
        """Nothing else changes."""

    def act(
        self, observations: Tensor, state: LstmState, noise: Tensor, masks: Tensor | None = None
    ) -> tuple[Tensor, LstmState]:
        """Sampled actions (L, n, A) for L slots of n rows, and the next recurrent states.

        Parameters
        ----------
        observations
            (L, n, D) float32.
        state
            Hidden and cell state, (L, n, units) each; zeros where a row's episode begins.
        noise
            (L, n, `Actor.noise`) standard normal numbers.
        masks
            (L, n, choices) bool, of policies that take them.
        """
        actions, hidden, cell = self._mapped(
            self._weights, observations, *state, noise, *([] if masks is None else [masks])
        )
        return actions, (hidden, cell)

    def _step(self, weights: dict[str, Tensor], *arguments: Tensor) -> Any:
        return functional_call(self._skeleton, weights, arguments)


class PolicyBatch:
    """Policies of one kind in the battles that they play.

    The battles of a policy are put into slots of equal length, so that all slots act at once. Slots are padded with
    empty places, whose results are not used.

    Decisions that are recorded in a CUDA graph need slots of the same number and length whichever policies play: they
    are short, their number only grows, and a policy keeps its own where it can.

    Parameters
    ----------
    actor
        One of the policies.
    battles, team
        Number of battles B, and of mechs that a policy controls in each.
    device
        Device of the policies.
    recorded
        Whether the kernels of decisions are recorded and replayed. On the CPU slots are then only laid out so.
    """

    def __init__(self, actor: Actor, battles: int, team: int, device: torch.device, recorded: bool = False) -> None:
        self._battles, self._team, self._recorded = battles, team, recorded
        self._state = torch.zeros(2, battles * team + 1, actor.units, device=device)  # the last row: empty places'
        self._stacked = StackedPolicies(actor, device)
        self._noise, self._choices = actor.noise, actor.choices
        self._compute = Graphed(self._act, self._stacked) if recorded else self._act
        self._staging = Staging(device)
        self._slots: list[Actor | None] = []  # whose weights each has
        self._index = torch.zeros(0, 0, dtype=torch.int64, device=device)  # (L, n): the row of every place
        self._own = np.zeros(0, np.int64)  # (n,): the rows of the batch, in the order of the places

    @property
    def state(self) -> Tensor:
        """Hidden and cell state (2, R, units), a view."""
        return self._state[:, :-1]

    def forget(self, mask: NDArray[np.bool_]) -> None:
        """Clear the recurrent state of the rows that the mask (R,) selects."""
        self._state.index_fill_(1, torch.from_numpy(np.flatnonzero(mask)).to(self._state.device), 0.0)

    def clear(self) -> None:
        """Clear all recurrent states, and forget the policies; recordings are kept."""
        self._state.zero_()
        self.arrange([None] * self._battles)

    def arrange(self, policies: Sequence[Actor | None]) -> None:
        """Put the battles (B,) into slots. None marks a battle of another batch.

        Raises ValueError for a policy of another kind.
        """
        battles: dict[Actor, list[int]] = {}
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

    def _load(self, policies: Sequence[Actor]) -> list[int]:
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
        missing: dict[Actor, list[int]] = {}
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
        given = {
            "noise": torch.randn(len(observations) + 1, self._noise),  # belongs to the row, whichever slot it is in
            "seen": torch.from_numpy(np.ascontiguousarray(observations, np.float32)),
        }
        if self._choices is not None and self._choices.masks is not None:
            given["masks"] = torch.from_numpy(self._choices.masks(observations))
        moved = self._staging.to_device(given)
        assert isinstance(moved, dict)
        with torch.inference_mode(), torch_threads(1):
            acted, after = self._compute(moved["seen"], self._state, self._index, moved["noise"], moved.get("masks"))
            acted = acted.cpu().numpy()[self._own]
        self._state.copy_(after)
        actions[self._own] = acted if self._choices is None else self._choices.read(acted)

    def _act(
        self, seen: Tensor, state: Tensor, index: Tensor, noise: Tensor, masks: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Actions (R + 1, A) and the next states (2, R + 1, units) of the rows `index` (L, n) of L slots, others' kept.

        Given observations (R, D), states (2, R + 1, units), noise (R + 1, N) and masks (R, choices).
        """
        place, before = index.clamp_max(len(seen) - 1), state[:, index]
        possible = None if masks is None else masks[place]
        acted, after = self._stacked.act(seen[place], (before[0], before[1]), noise[index], possible)
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
