"""Policies as opponents: one decision, made of operations that can be mapped over the weights of many policies."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from sb3_contrib.common.maskable.distributions import (
    MaskableCategoricalDistribution,
    MaskableMultiCategoricalDistribution,
)
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from stable_baselines3.common.distributions import (
    CategoricalDistribution,
    DiagGaussianDistribution,
    MultiCategoricalDistribution,
)
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import Tensor, nn
from torch.distributions import Distribution, Normal
from torch.nn import functional

from echelon_env.layout.parts import NUM_PARTS
from echelon_env.spaces import ActionFormat, read_action
from echelon_train.policy import BattlePolicy, build_policy
from echelon_train.policy.choices import environment_actions
from echelon_train.policy.distributions import ActionDistribution
from echelon_train.policy.encoders import SetEncoder
from echelon_train.policy.lstm import lstm_step
from echelon_train.policy.sequences import LstmState
from echelon_train.tensor_files import weights_of

Floats = NDArray[np.float32]

DISTRIBUTIONS = (
    DiagGaussianDistribution,
    CategoricalDistribution,
    MultiCategoricalDistribution,
    MaskableCategoricalDistribution,
    MaskableMultiCategoricalDistribution,
)
"""The distributions of actions that can be sampled with given noise, beside that of `BattlePolicy`."""

_CRITIC = ("value_net.", "lstm_critic.", "critic.", "vf_features_extractor.", "return_normalizer.")
"""Beginnings of the names of weights that acting does not need."""


@dataclass
class Normalization:
    """The normalisation of a policy's observations: by mean (D,) and scale (D,) float32, then clipped."""

    mean: Floats
    scale: Floats
    clip: float


@dataclass(frozen=True)
class Choices:
    """How a policy with discrete actions plays: their format, and what the rows' observations make possible."""

    action_format: ActionFormat
    masks: Callable[[Floats], NDArray[np.bool_]] | None
    """(R, choices) bool for observations (R, D); None for a policy without masks."""

    def read(self, actions: NDArray[np.int64]) -> Floats:
        """The environment's actions (R, A) for choices (R, parts)."""
        given = actions[:, 0] if self.action_format == "discrete" else actions
        return read_action(self.action_format, given, batch=len(actions))


class Actor:
    """A policy that plays: its weights, and what they need of its rows.

    Parameters
    ----------
    policy
        A `BattlePolicy`, or an actor-critic policy of stable-baselines3 or sb3-contrib for flat observations.
    normalization
        Of its observations; None: none.
    choices
        How it plays discrete actions; None: its actions are those of the environment.
    """

    def __init__(
        self, policy: ActorCriticPolicy, normalization: Normalization | None = None, choices: Choices | None = None
    ) -> None:
        self.policy, self.normalization, self.choices = policy, normalization, choices
        lstm = policy.lstm_actor if isinstance(policy, RecurrentActorCriticPolicy) else None
        self.units = 0 if lstm is None else lstm.num_layers * lstm.hidden_size
        """Numbers of a row's hidden state, and of its cell state."""
        self.noise = _noise(policy)
        """Standard normal numbers that a row's decision takes."""
        shapes = tuple((name, tuple(tensor.shape)) for name, tensor in self.weights().items())
        self.kind: Hashable = (type(policy), getattr(policy, "network", None), shapes)
        """Those of one kind compute alike, with other weights."""

    def weights(self) -> dict[str, Tensor]:
        """What acting needs, by the names in `Step`: no copies."""
        policy = self.policy
        critic = {id(each) for each in policy.critic_parameters()} if isinstance(policy, BattlePolicy) else set()
        named = [*policy.named_parameters(), *policy.named_buffers()]
        named = [(name, each) for name, each in named if id(each) not in critic and not name.startswith(_CRITIC)]
        found = {f"policy.{name}": each.detach() for name, each in named}
        if self.normalization is not None:
            found |= {name: torch.as_tensor(each) for name, each in vars(self.normalization).items()}
        return found


def frozen_copy(policy: BattlePolicy, earlier: BattlePolicy | None = None) -> BattlePolicy:
    """A copy of a policy's present weights for playing: `earlier`, a copy of the same policy, or a new one."""
    if earlier is None:
        earlier = build_policy(policy.network)
        earlier.set_training_mode(False)
    present = weights_of(policy)
    for name, tensor in weights_of(earlier).items():
        tensor.copy_(present[name])
    return earlier


class Step(nn.Module):
    """One decision of an actor for n rows."""

    mean: Tensor
    scale: Tensor
    clip: Tensor

    def __init__(self, actor: Actor) -> None:
        super().__init__()
        self.policy = copy.deepcopy(actor.policy)
        self.policy._process_sequence = _cell
        self.policy.set_training_mode(False)
        for module in self.policy.modules():
            if isinstance(module, SetEncoder):
                module.dense = True
        self._normalizes = actor.normalization is not None
        for name, each in vars(actor.normalization).items() if actor.normalization is not None else ():
            self.register_buffer(name, torch.as_tensor(each))

    def forward(
        self, observations: Tensor, hidden: Tensor, cell: Tensor, noise: Tensor, masks: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Actions (n, A) or choices (n, parts), and the next states (n, units).

        Given observations (n, D), states (n, units), standard normal numbers (n, N) and masks (n, choices).
        """
        if self._normalizes:
            observations = ((observations - self.mean) * self.scale).clamp(-self.clip, self.clip)
        with _unchecked_distributions():
            if isinstance(self.policy, RecurrentActorCriticPolicy):
                starts = torch.zeros_like(observations[:, 0])
                distribution, (hidden, cell) = self.policy.get_distribution(observations, (hidden, cell), starts)
            elif masks is None:
                distribution = self.policy.get_distribution(observations)
            else:
                distribution = self.policy.get_distribution(observations, action_masks=masks)
        return _sampled(distribution, noise), hidden, cell


def _cell(features: Tensor, state: LstmState, starts: Tensor, lstm: nn.LSTM) -> tuple[Tensor, LstmState]:
    """One step of an LSTM, written out because `vmap` does not support torch's. States (n, layers * units)."""
    begins, after = (starts > 0.5).unsqueeze(1), []
    layers = zip(*(part.chunk(lstm.num_layers, 1) for part in state), strict=True)
    for (weight_in, weight_back, bias_in, bias_back), before in zip(lstm.all_weights, layers, strict=True):
        inputs = functional.linear(features, weight_in, bias_in)
        features, cell = lstm_step(inputs, before, begins, weight_back, bias_back)
        after.append((features, cell))
    hidden, cells = (torch.cat(part, 1) for part in zip(*after, strict=True))
    return features, (hidden, cells)


def _sampled(distribution: Any, noise: Tensor) -> Tensor:
    """Actions (n, A) or choices (n, parts) of a policy's distribution, given standard normal numbers (n, N)."""
    if isinstance(distribution, ActionDistribution):
        return environment_actions(distribution.sample(uniform(noise)))
    parts = getattr(distribution, "distributions", None) or distribution.distribution
    if isinstance(parts, Normal):
        return (parts.loc + parts.scale * noise).clamp(-1.0, 1.0)
    logits = [part.logits for part in (parts if isinstance(parts, list) else [parts])]
    gumbel = -(-uniform(noise, 1e-7).log()).log()  # the largest sum with a logit is a choice by its probability
    split = torch.split(gumbel, [part.shape[1] for part in logits], 1)
    return torch.stack([(part + each).argmax(1) for part, each in zip(logits, split, strict=True)], 1)


def uniform(noise: Tensor, least: float = 0.0) -> Tensor:
    """Uniform numbers from standard normal ones, below 1."""
    below: Tensor = torch.special.ndtr(noise)
    return below.clamp(least, 1.0 - 1.2e-7)


def _noise(policy: ActorCriticPolicy) -> int:
    if isinstance(policy, BattlePolicy):
        return NUM_PARTS
    space = policy.action_space
    return int(np.sum(space.nvec) if isinstance(space, spaces.MultiDiscrete) else spaces.flatdim(space))


def takes_masks(policy: ActorCriticPolicy) -> bool:
    """Whether a policy takes masks of the possible actions."""
    return isinstance(policy, MaskableActorCriticPolicy)


@contextlib.contextmanager
def _unchecked_distributions() -> Iterator[None]:
    """Torch's distributions do not check their parameters: the checks depend on numbers, which `vmap` refuses."""
    before = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(before)
