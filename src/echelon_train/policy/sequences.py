"""Recurrent policies of sb3-contrib, trained on sequences with one call of the LSTM."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from gymnasium import spaces
from sb3_contrib.common.recurrent import policies as stock
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from torch import Tensor, nn

LstmState = tuple[Tensor, Tensor]
"""Hidden and cell state, each (layers, rows, units)."""

Observations = Tensor | dict[str, Tensor]
"""Observations of some rows, (rows, ...), or a dict of them."""


class Sequences(NamedTuple):
    """How the S samples of a minibatch follow one another: in n sequences of up to L steps, each within an episode."""

    length: int  # L
    number: int  # n
    starts: Tensor  # (n,) float32: 1 where a sequence is the beginning of an episode
    place: Tensor | None  # (S,) int64: step * n + sequence of every sample; None if sample i is at place i and S = L n

    def following(self, samples: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """For each of S samples the number of the one after it in its sequence (S,), and whether there is one (S,)."""
        numbers = torch.arange(samples, device=device)
        place = numbers if self.place is None else self.place
        # one step more than there is, which stays empty
        at = torch.full(((self.length + 1) * self.number,), -1, device=device).index_copy(0, place, numbers)
        following = at[place + self.number]
        return following.clamp_min(0), following >= 0

    def only(self, samples: Tensor) -> tuple[Sequences, Tensor]:
        """The sequences that some samples are in, in their order and without the other samples; it may be none.

        Parameters
        ----------
        samples
            (S',) int64 and ascending: their numbers.

        Returns
        -------
        The sequences, of S' samples, and their numbers (n',), int64 and ascending.
        """
        place = samples if self.place is None else self.place.index_select(0, samples)
        sequence = place % self.number
        kept = torch.zeros(self.number, dtype=torch.bool, device=samples.device).index_fill(0, sequence, True)
        numbers, rank = kept.nonzero().flatten(), kept.cumsum(0) - 1
        place = place // self.number * len(numbers) + rank.index_select(0, sequence)
        return Sequences(self.length, len(numbers), self.starts.index_select(0, numbers), place), numbers


class ActionEvaluation(NamedTuple):
    """A policy's evaluation of S samples, n of which are of active rows."""

    values: Tensor  # (S, 1), in terms of the return normaliser if there is one
    log_probs: Tensor  # (n,) of the raw actions
    entropy: Tensor | None  # (n,), None if the distribution has no formula for it
    latent: Tensor | None = None  # (S, F), what the actor's head is given


class SequencePolicy(stock.RecurrentActorCriticPolicy):  # type: ignore[misc]
    """A recurrent actor-critic whose sequences have their episode starts at their first step only.

    The interface that `EchelonRecurrentPPO` needs. The raw actions of `forward` and `evaluate` may differ from
    those that the environment gets.
    """

    num_groups = 1
    """Number of the groups of `groups`."""

    encoding_dtype: torch.dtype | None = None
    """What encoders of policies that can may compute in, if not in float32; the LSTM and the heads never do."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register_module("return_normalizer", None)

    def save(self, path: str) -> None:
        """Refused: stable-baselines3 would write a pickle. Raises NotImplementedError."""
        raise NotImplementedError("a policy is saved with its algorithm: EchelonRecurrentPPO.save(path)")

    @classmethod
    def load(cls, path: str, device: torch.device | str = "auto") -> Any:
        """Refused: what stable-baselines3 would load can run code. Raises NotImplementedError."""
        raise NotImplementedError("a policy is loaded with its algorithm: EchelonRecurrentPPO.load(path).policy")

    @staticmethod
    def _process_sequence(
        features: Tensor, lstm_states: LstmState, episode_starts: Tensor | Sequences, lstm: nn.LSTM
    ) -> tuple[Tensor, LstmState]:
        """Run an LSTM over sequences in one call.

        The stock method walks through time in Python whenever any row starts an episode. The buffer cuts sequences at
        episode starts, so masking the initial state is enough.

        Parameters
        ----------
        features
            (S, F) in the order of `Sequences`, or, with a tensor of starts, one sequence after the other.
        lstm_states
            (layers, n, units) each, before the sequences' first steps.
        episode_starts
            `Sequences`, or (S,) of which only those of first steps count.
        lstm
            The LSTM.

        Returns
        -------
        Its outputs (S, units) in the order of the features, and its states after the last steps, which mean something
        only for sequences that are L steps long.
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
        # not a product: a state that is not finite must not outlive its episode
        output, states = lstm(steps, (hidden.masked_fill(begins, 0.0), cell.masked_fill(begins, 0.0)))
        if not isinstance(episode_starts, Sequences):
            return output.transpose(0, 1).flatten(0, 1), states
        output = output.flatten(0, 1)
        return (output if place is None else output[place]), states

    def evaluate(
        self,
        observations: Observations,
        actions: Tensor,
        states: RNNStates,
        sequences: Sequences,
        active: Tensor | None = None,
    ) -> ActionEvaluation:
        """Evaluate S samples, given the recurrent states (layers, sequences, units) before their sequences.

        Of the raw actions (S, ...) only those count whose numbers are in `active`, (n,) int64; None: all.
        """
        values, log_probs, entropy = self.evaluate_actions(observations, actions, states, sequences)
        if active is None:
            return ActionEvaluation(values, log_probs, entropy)
        return ActionEvaluation(values, log_probs[active], None if entropy is None else entropy[active])

    def auxiliary_errors(
        self, evaluation: ActionEvaluation, actions: Tensor, observations: Observations, sequences: Sequences
    ) -> Tensor:
        """(S,): how badly the policy predicts the next observation, 0 where there is none; for the auxiliary loss.

        Raises NotImplementedError for policies that do not predict it.
        """
        raise NotImplementedError(f"{type(self).__name__} does not predict observations: auxiliary_coef must be 0")

    def raw_action(self) -> tuple[tuple[int, ...], torch.dtype]:
        """Shape and dtype of a row's raw action."""
        discrete = isinstance(self.action_space, (spaces.Discrete, spaces.MultiDiscrete))
        return self.action_space.shape, torch.int64 if discrete else torch.float32

    def environment_actions(self, actions: Tensor) -> Tensor:
        """The actions (rows, ...) that the environment is given for raw ones: inside the bounds of a Box."""
        if not isinstance(self.action_space, spaces.Box):
            return actions
        low, high = (
            torch.as_tensor(end, device=actions.device) for end in (self.action_space.low, self.action_space.high)
        )
        return torch.minimum(torch.maximum(actions, low), high)

    def actor_mask(self, observations: Observations) -> Tensor | None:
        """(rows,) bool: the rows whose actions have an effect; the others train the critic only. None: all rows."""
        return None

    def groups(self, observations: Observations) -> Tensor | None:
        """(rows,) int64: the group in which a row's advantage is normalised. None: one group."""
        return None

    def observe(self, observations: Observations, actor_mask: Tensor) -> None:
        """Update running statistics with the observations (rows, ...) of active rows (rows,) bool."""

    def diagnostics(self, observations: Observations, states: RNNStates, sequences: Sequences) -> dict[str, float]:
        """Numbers to log after an update, from some of its samples as `evaluate` is given them."""
        return {"std": float(self.log_std.detach().exp().mean())} if hasattr(self, "log_std") else {}

    def critic_parameters(self) -> list[nn.Parameter]:
        """The parameters that the actor has no part in."""
        critic: list[Any] = [self.value_net, self.mlp_extractor.value_net, self.lstm_critic, self.critic]
        if not self.share_features_extractor:
            critic.append(self.vf_features_extractor)
        return [parameter for module in critic if module is not None for parameter in module.parameters()]


class MlpLstmPolicy(SequencePolicy):
    """sb3-contrib's recurrent policy of vectors."""


class CnnLstmPolicy(SequencePolicy, stock.RecurrentActorCriticCnnPolicy):  # type: ignore[misc]
    """sb3-contrib's recurrent policy of images."""


class MultiInputLstmPolicy(SequencePolicy, stock.RecurrentMultiInputActorCriticPolicy):  # type: ignore[misc]
    """sb3-contrib's recurrent policy of dicts."""
