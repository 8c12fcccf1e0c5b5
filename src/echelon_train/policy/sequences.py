"""The base class of recurrent policies, and sb3-contrib's policies built on it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import torch
from gymnasium import spaces
from sb3_contrib.common.recurrent import policies as stock
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from torch import Tensor, nn

LstmState = tuple[Tensor, Tensor]
"""Hidden and cell state, (layers, rows, units) each."""

Observations = Tensor | dict[str, Tensor]
"""A tensor (rows, ...), or a dict of such tensors. A policy with `shares_states` also takes them with fewer states."""

STATE, TEAM = "state", "team"
"""Entries of such a dict: global states (states, S), and the number of each row's, (rows,) int64."""


class Sequences(NamedTuple):
    """The layout of the S samples of a minibatch: n sequences of up to L steps, each within one episode."""

    length: int  # L
    number: int  # n
    starts: Tensor  # (n,) float32: 1 where a sequence is the beginning of an episode; (L, n) for a dense policy
    place: Tensor | None  # (S,) int64: step * n + sequence of each sample; None if place[i] = i and S = L n

    def select(self, samples: Tensor) -> tuple[Sequences, Tensor]:
        """The layout of a subset of the samples; sequences without any of them are dropped.

        Parameters
        ----------
        samples
            (S',) int64, ascending: indices of the samples; may be empty.

        Returns
        -------
        The layout of S' samples in n' sequences, and the old indices (n',) int64, ascending, of these sequences.
        """
        place = samples if self.place is None else self.place.index_select(0, samples)
        sequence = place % self.number
        mask = torch.zeros(self.number, dtype=torch.bool, device=samples.device).index_fill(0, sequence, True)
        kept, rank = mask.nonzero().flatten(), mask.cumsum(0) - 1
        place = place // self.number * len(kept) + rank.index_select(0, sequence)
        return Sequences(self.length, len(kept), self.starts.index_select(0, kept), place), kept


class ActionEvaluation(NamedTuple):
    """A policy's evaluation of S samples; n of them are of active rows."""

    values: Tensor  # (S, 1), in the units of the return normaliser if there is one
    log_probs: Tensor  # (n, blocks) of the blocks of the raw actions
    entropy: Tensor | None  # (n, blocks), None if the distribution has no closed form
    label_losses: Tensor | None = None  # (n, blocks), cross-entropies of the teacher's raw actions, if there are any


class SequencePolicy(stock.RecurrentActorCriticPolicy):  # type: ignore[misc]
    """The interface of policies of `EchelonRecurrentPPO`: a recurrent actor-critic trained on `Sequences`.

    An episode starts at the first step of a sequence only, so one call of the LSTM processes all sequences. The raw
    actions of `forward` and `evaluate` may differ from the actions that the environment gets.
    """

    blocks: tuple[str, ...] = ("action",)
    """Names of the blocks of an action, which have separate log-probabilities and entropies."""

    shares_states = False
    """Whether rows may share global states, see `TEAM`."""

    can_be_dense = False
    """Whether `dense` may be True."""

    dense = False
    """Compute all rows and samples, and mask the results: shapes do not depend on the data. So a GPU need not be waited
    for, and one CUDA graph serves. `Sequences` then have L steps of n sequences in which episodes may start at
    any step: samples are in the order of `place` = None, and `starts` is (L, n)."""

    can_be_recorded = False
    """Whether `decide` and `evaluate` can be recorded in CUDA graphs if the policy is dense: they neither wait for the
    GPU nor read memory of the CPU, draw no random numbers, and change nothing."""

    encoding_dtype: torch.dtype | None = None
    """Autocast dtype of the encoders, for policies that support it. None: float32, as the LSTM and heads always use."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register_module("return_normalizer", None)

    def save(self, path: str) -> None:
        """Not supported, because stable-baselines3 would write a pickle. Raises NotImplementedError."""
        raise NotImplementedError("a policy is saved with its algorithm: EchelonRecurrentPPO.save(path)")

    @classmethod
    def load(cls, path: str, device: torch.device | str = "auto") -> Any:
        """Not supported, because stable-baselines3's files can run code. Raises NotImplementedError."""
        raise NotImplementedError("a policy is loaded with its algorithm: EchelonRecurrentPPO.load(path).policy")

    @staticmethod
    def _process_sequence(
        features: Tensor, lstm_states: LstmState, episode_starts: Tensor | Sequences, lstm: nn.LSTM
    ) -> tuple[Tensor, LstmState]:
        """Run an LSTM over sequences in one call.

        sb3-contrib's method loops over time in Python whenever a row starts an episode. The buffer cuts sequences at
        episode starts, so it is enough to mask the initial state.

        Parameters
        ----------
        features
            (S, F) in the order of `Sequences`, or, with a tensor of starts, one sequence after the other.
        lstm_states
            (layers, n, units) each, before the sequences' first steps.
        episode_starts
            `Sequences`, or (S,) float32, of which only those of the sequences' first steps are used.
        lstm
            The LSTM.

        Returns
        -------
        Outputs (S, units) in the order of the features, and the states after step L, which are valid only for sequences
        of L steps.
        """
        hidden, cell = lstm_states
        if isinstance(episode_starts, Sequences):
            length, count, starts, place = episode_starts
            steps = features
            if place is not None:
                steps = features.new_zeros(length * count, features.shape[1]).index_copy(0, place, features)
            steps = steps.view(length, count, features.shape[1])
        else:
            count, place = hidden.shape[1], None
            starts = episode_starts.view(count, -1)[:, 0]
            steps = features.view(count, -1, features.shape[-1]).transpose(0, 1)
        begins = (starts > 0.5).view(1, count, 1)
        # not a product: a state that is not finite must not reach the next episode
        output, states = lstm(steps, (hidden.masked_fill(begins, 0.0), cell.masked_fill(begins, 0.0)))
        if not isinstance(episode_starts, Sequences):
            return output.transpose(0, 1).flatten(0, 1), states
        output = output.flatten(0, 1)
        return (output if place is None else output[place]), states

    def noise(self, rows: int) -> Tensor | None:
        """Random numbers for `decide`; None if it draws them itself."""
        return None

    def decide(
        self, obs: Observations, lstm_states: RNNStates, episode_starts: Tensor, noise: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, RNNStates]:
        """The results of `forward` with the random numbers of `noise`. Rollouts are collected with it."""
        decided: tuple[Tensor, Tensor, Tensor, RNNStates] = self(obs, lstm_states, episode_starts)
        return decided

    def evaluate(
        self,
        observations: Observations,
        actions: Tensor,
        states: RNNStates,
        sequences: Sequences,
        active: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> ActionEvaluation:
        """Evaluate S samples, given the recurrent states (layers, n, units) before the sequences' first steps.

        Log-probabilities, entropies and the losses of a teacher's actions, `labels` (S, ...), are those of the
        samples `active`, int64 indices; None: all. Raises NotImplementedError for labels if the policy cannot imitate.
        """
        if labels is not None:
            raise NotImplementedError(f"{type(self).__name__} does not learn from a teacher")
        values, log_probs, entropy = self.evaluate_actions(observations, actions, states, sequences)
        chosen = slice(None) if active is None else active
        entropy = None if entropy is None else entropy[chosen].unsqueeze(1)
        return ActionEvaluation(values, log_probs[chosen].unsqueeze(1), entropy)

    def set_dense(self, dense: bool) -> None:
        """Set `dense`. Raises ValueError if the policy cannot be dense."""
        if dense and not self.can_be_dense:
            raise ValueError(f"{type(self).__name__} cannot compute all rows and mask the results")
        self.dense = dense

    def recorded_settings(self) -> Hashable:
        """What may change and is no tensor. Kernels that are recorded in a CUDA graph depend on it."""
        return self.encoding_dtype

    def raw_action(self) -> tuple[tuple[int, ...], torch.dtype]:
        """Shape and dtype of a row's raw action."""
        discrete = isinstance(self.action_space, (spaces.Discrete, spaces.MultiDiscrete))
        return self.action_space.shape, torch.int64 if discrete else torch.float32

    def environment_actions(self, actions: Tensor) -> Tensor:
        """Convert raw actions (rows, ...) to the environment's: clipped to the bounds of a Box, else unchanged."""
        if not isinstance(self.action_space, spaces.Box):
            return actions
        low, high = (
            torch.as_tensor(end, device=actions.device) for end in (self.action_space.low, self.action_space.high)
        )
        return torch.minimum(torch.maximum(actions, low), high)

    def actor_mask(self, observations: Observations) -> Tensor | None:
        """(rows,) bool: rows whose actions have an effect; the other rows train the critic only. None: all rows.

        The observations are on the CPU in rollouts, whatever the device of the policy.
        """
        return None

    def critic_parameters(self) -> list[nn.Parameter]:
        """The parameters that only the critic uses."""
        critic: list[Any] = [self.value_net, self.mlp_extractor.value_net, self.lstm_critic, self.critic]
        if not self.share_features_extractor:
            critic.append(self.vf_features_extractor)
        return [parameter for module in critic if module is not None for parameter in module.parameters()]


class MlpLstmPolicy(SequencePolicy):
    """sb3-contrib's recurrent policy for vectors."""


class CnnLstmPolicy(SequencePolicy, stock.RecurrentActorCriticCnnPolicy):  # type: ignore[misc]
    """sb3-contrib's recurrent policy for images."""


class MultiInputLstmPolicy(SequencePolicy, stock.RecurrentMultiInputActorCriticPolicy):  # type: ignore[misc]
    """sb3-contrib's recurrent policy for dicts."""
