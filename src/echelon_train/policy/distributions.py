"""The distribution over a mech's action: independent choices, of those that are possible."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from echelon_env.layout.actions import TARGET_CHOICES
from echelon_env.layout.parts import ALL_PARTS, BLOCK_PARTS, CHOICE_STARTS, CHOICES, SIZES
from echelon_train.policy.tables import device_table

TARGET_LOGITS = slice(CHOICE_STARTS["target"] + 1, CHOICE_STARTS["target"] + 1 + TARGET_CHOICES)
"""Part of the policy's output: the logits of the contact rows as targets, without that of none."""

_LEAST_LOG_PROB = -80.0
"""The exponential of which is 2e-35: no float32 near it is subnormal."""

_LEAST_PROBABILITY = 1e-34
"""Of choices that are sampled; there are no uniform numbers so small."""

_WIDTHS = [len(parts) for parts in BLOCK_PARTS.values()]
"""Parts of each block."""

_BIASES = {"vent": (0.0, math.log(0.1 / 0.9)), "electronics": (math.log(0.8 / 0.1), 0.0, 0.0)}


@device_table
def _columns(device: torch.device) -> Tensor:
    """(most choices * parts,) columns of the logits by choice and part; the one after the last where there is none."""
    columns = [
        CHOICE_STARTS[part.name] + choice if choice < size else CHOICES
        for choice in range(max(SIZES))
        for part, size in zip(ALL_PARTS, SIZES, strict=True)
    ]
    return torch.tensor(columns, device=device)


def initial_bias() -> Tensor:
    """Bias of the policy's output layer with which a policy of small weights starts, (CHOICES,) float32.

    Venting, which holds fire, has probability 0.1, and electronics stay silent with 0.8. All other parts are uniform
    among what is possible.
    """
    return torch.tensor([logit for part in ALL_PARTS for logit in _BIASES.get(part.name, (0.0,) * len(part.values))])


class ActionDistribution:
    """Independent categorical distributions of the parts of an action, for each of R rows.

    A choice that the mask rules out is never made. Works in the dtype of the logits, float32 or float64.

    Parameters
    ----------
    logits
        (R, CHOICES), the policy's output.
    masks
        (R, CHOICES) bool, as `action_masks` makes them; of every part something is possible.
    """

    def __init__(self, logits: Tensor, masks: Tensor) -> None:
        # Not minus infinity: its product with a probability of 0, in the entropy and in gradients, would be NaN.
        impossible = torch.finfo(logits.dtype).min
        self._possible = masks
        logits = torch.where(masks, logits, impossible)
        # Choices before parts: a softmax over a short last axis is slow.
        self._log_probs = functional.log_softmax(self._by_choice(logits, impossible), 1)

    def sample(self, noise: Tensor) -> Tensor:
        """Choices (R, NUM_PARTS) int64 from uniform numbers in [0, 1), by inverse transform sampling."""
        with torch.no_grad():
            cumulative = functional.threshold(self._likely().exp(), _LEAST_PROBABILITY, 0.0).cumsum(1)
            passed = cumulative <= (noise * cumulative[:, -1]).unsqueeze(1)
            return passed.sum(1)

    def mode(self) -> Tensor:
        """The most probable choices (R, NUM_PARTS) int64."""
        with torch.no_grad():
            return self._log_probs.argmax(1)

    def block_log_probs(self, choices: Tensor) -> Tensor:
        """Log-probabilities (R, len(BLOCKS)) of the blocks of choices (R, NUM_PARTS).

        A choice that the mask rules out is about as improbable as the dtype can represent.
        """
        return self._by_block(self._chosen(self._log_probs, choices))

    def label_losses(self, labels: Tensor) -> Tensor:
        """Cross-entropies (R, len(BLOCKS)) in nats of a teacher's choices (R, NUM_PARTS), by block.

        Labels that the mask rules out have no loss.
        """
        possible = self._chosen(self._by_choice(self._possible, False), labels)
        return self._by_block(torch.where(possible, -self._chosen(self._log_probs, labels), 0.0))

    def block_entropies(self) -> Tensor:
        """Entropies (R, len(BLOCKS)) of the blocks in nats."""
        likely = self._likely()
        return self._by_block(-(likely.exp() * likely).sum(1))

    def _likely(self) -> Tensor:
        """Log-probabilities of the choices, none so low that its exponential takes a hundred times as long."""
        return self._log_probs.clamp_min(_LEAST_LOG_PROB)

    @staticmethod
    def _chosen(entries: Tensor, choices: Tensor) -> Tensor:
        """The entries (R, most choices, parts) of choices (R, NUM_PARTS): (R, NUM_PARTS)."""
        return entries.gather(1, choices.long().unsqueeze(1)).squeeze(1)

    @staticmethod
    def _by_choice(entries: Tensor, missing: float | bool) -> Tensor:
        """Entries (R, CHOICES) as (R, most choices, parts), `missing` where there are fewer."""
        padded = functional.pad(entries, (0, 1), value=missing)
        return padded.index_select(1, _columns(entries.device)).view(len(entries), max(SIZES), len(SIZES))

    @staticmethod
    def _by_block(parts: Tensor) -> Tensor:
        """Numbers of the parts (R, NUM_PARTS), summed by block: (R, len(BLOCKS))."""
        # No product with a table: CUDA may round its factors to TF32.
        return torch.stack([each.sum(1) for each in torch.split(parts, _WIDTHS, 1)], 1)
