"""The distribution over a mech's hybrid action: squashed Gaussian numbers, Bernoulli switches, categorical choices."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from echelon_env.layout.actions import BLOCKS, TARGET_CHOICES, Action
from echelon_env.networks.possible import BY_KIND, NUMBERS, OPTION_STARTS, OPTIONS, SIZES, SWITCHES
from echelon_train.policy.raw_actions import RAW_COLUMNS, raw_tables
from echelon_train.policy.tables import device_table

_CHOICES = BY_KIND["choice"]

_FIRST_TARGET = 2 * NUMBERS + OPTION_STARTS["target"] + 1

TARGET_LOGITS = slice(_FIRST_TARGET, _FIRST_TARGET + TARGET_CHOICES)
"""Part of the policy's output: the logits of the contact rows as targets, without that of none."""

_LEAST_LOG_PROB = -80.0
"""The exponential of which is 2e-35: no float32 near it is subnormal."""

_LEAST_PROBABILITY = 1e-34
"""Of options that are sampled; there are no uniform numbers so small."""

_OUTLIER = 3.0
"""Standard deviations from which a label's loss grows linearly."""

_LOGISTIC_WEIGHTS = (0.3236655506, 0.5658859831, 0.1104484663)
_LOGISTIC_SCALES = (0.57648302605, 0.92086289193, 1.45848703912)


@dataclass(frozen=True)
class _Tables:
    """Index tables on one device."""

    options: Tensor  # (largest choice * choices,) columns of the options' logits; the last where a choice has fewer
    blocks: Tensor  # (RAW_DIM, len(BLOCKS)) float32: 1 where a column, ordered by kind, belongs to a block


@device_table
def _tables(device: torch.device) -> _Tables:
    options = [
        OPTION_STARTS[block.name] + option if option < block.choices else SWITCHES + OPTIONS
        for option in range(max(SIZES))
        for block in _CHOICES
    ]
    names = [block.name for blocks in BY_KIND.values() for block in blocks for _ in RAW_COLUMNS[block.name]]
    return _Tables(
        options=torch.tensor(options, device=device),
        blocks=torch.tensor([[float(name == block.name) for block in BLOCKS] for name in names], device=device),
    )


@device_table
def _logistic_mixture(device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Weights and scales, (3, 1, 1) each, of the mixture in `_mean_log_slope`."""
    weights, scales = torch.tensor([_LOGISTIC_WEIGHTS, _LOGISTIC_SCALES], device=device, dtype=dtype)
    return weights.view(-1, 1, 1), scales.view(-1, 1, 1)


def parameter_bias(initial_std: float, min_std: float, max_std: float) -> Tensor:
    """Bias of the policy's output layer with which a policy of small weights starts.

    Numbers have mean 0 and standard deviation `initial_std` before tanh. Triggers are pulled with probability 1/2;
    venting holds fire and has 0.1, electronics stay silent with 0.8; the other choices are uniform among what is
    possible.

    Returns
    -------
    torch.Tensor
        (PARAMETERS,) float32.
    """
    share = math.log(initial_std / min_std) / math.log(max_std / min_std)
    logits: list[float] = []
    for block in (*BY_KIND["switches"], *_CHOICES):
        if block.kind == "switches":
            logits += [_logit(0.1) if entry is Action.VENT else 0.0 for entry in block.entries]
        else:
            silent = math.log(0.8 / 0.1) if block.name == "electronics" else 0.0
            logits += [silent] + [0.0] * (block.choices - 1)
    return torch.tensor([0.0] * NUMBERS + [_logit(share)] * NUMBERS + logits)


def _logit(probability: float) -> float:
    return math.log(probability / (1.0 - probability))


class HybridDistribution:
    """Independent distributions of the entries of an action, for each of R rows.

    Numbers are Gaussian before tanh, with a log-std between those of `min_std` and `max_std`; switches are Bernoulli,
    choices categorical. An entry that the mask rules out is constant: a number or a switch is 0, an option is never
    chosen. Works in the dtype of the parameters, float32 or float64.

    Parameters
    ----------
    parameters
        (R, PARAMETERS), the policy's output.
    masks
        (R, MASKS) bool, as `action_masks` makes them; the first option of every choice is possible.
    min_std, max_std
        Bounds of the standard deviation before tanh.
    """

    def __init__(self, parameters: Tensor, masks: Tensor, min_std: float, max_std: float) -> None:
        mean, offsets, logits = torch.split(parameters, [NUMBERS, NUMBERS, SWITCHES + OPTIONS], 1)
        self._possible, self._free = torch.split(masks, [SWITCHES + OPTIONS, NUMBERS], 1)
        self._mean = torch.where(self._free, mean, 0.0)
        self._log_std = math.log(min_std) + math.log(max_std / min_std) * torch.sigmoid(offsets)
        # Not minus infinity: its product with a probability of 0, in the entropy and in gradients, would be NaN.
        impossible = torch.finfo(parameters.dtype).min
        logits = torch.where(self._possible, logits, impossible)
        self._switches = logits[:, :SWITCHES]
        self._tables = _tables(parameters.device)
        self._order = raw_tables(parameters.device)
        # Options before choices: a softmax over a short last axis is slow.
        self._choices = functional.log_softmax(self._by_option(logits, impossible), 1)

    def sample(self, noise: Tensor) -> Tensor:
        """Raw actions (R, RAW_DIM) from standard normal numbers (R, RAW_DIM), the only source of randomness.

        Discrete columns are sampled by inverting their distribution function at the normal one of their noise.
        """
        with torch.no_grad():
            normal, *rest = self._by_kind(noise)
            below_one = 1.0 - torch.finfo(noise.dtype).eps
            on, chosen = (torch.special.ndtr(each).clamp(max=below_one) for each in rest)
            numbers = torch.where(self._free, torch.addcmul(self._mean, self._log_std.exp(), normal), 0.0)
            cumulative = functional.threshold(self._likely().exp(), _LEAST_PROBABILITY, 0.0).cumsum(1)
            passed = cumulative <= (chosen * cumulative[:, -1]).unsqueeze(1)
            return self._in_order(numbers, on < torch.sigmoid(self._switches), passed.sum(1))

    def mode(self) -> Tensor:
        """The most probable raw actions (R, RAW_DIM): most probable before tanh; after it, the numbers' medians."""
        with torch.no_grad():
            return self._in_order(self._mean, self._switches > 0.0, self._choices.argmax(1))

    def log_prob(self, raw: Tensor) -> Tensor:
        """Log-probabilities (R,) of raw actions (R, RAW_DIM): the sum of `block_log_probs`."""
        return self.block_log_probs(raw).sum(1)

    def block_log_probs(self, raw: Tensor) -> Tensor:
        """Log-probabilities (R, len(BLOCKS)) of the blocks of raw actions (R, RAW_DIM).

        Those of numbers are densities after tanh. The logarithm of the derivative of tanh is
        2 (log 2 - u - softplus(-2 u)), which has no cancellation at any u. A number that the mask rules out counts 0; a
        switch or an option that it rules out is about as improbable as the dtype can represent.
        """
        numbers, switches, choices = self._by_kind(raw)
        deviation = (numbers - self._mean) * (-self._log_std).exp()
        slope = 2.0 * (math.log(2.0) - numbers - functional.softplus(-2.0 * numbers))
        densities = -0.5 * deviation.square() - self._log_std - 0.5 * math.log(2.0 * math.pi) - slope
        densities = torch.where(self._free, densities, 0.0)
        switched = -functional.softplus((1.0 - 2.0 * switches) * self._switches)
        chosen = self._choices.gather(1, choices.long().unsqueeze(1)).squeeze(1)
        return self._by_block(densities, switched, chosen)

    def label_losses(self, labels: Tensor) -> Tensor:
        """Cross-entropies (R, len(BLOCKS)) in nats of a teacher's raw actions (R, RAW_DIM), by block.

        Numbers have the Gaussian's negative log-density before tanh, but beyond `_OUTLIER` standard deviations it grows
        linearly, as Huber's loss does. Labels that the mask rules out have no loss.
        """
        numbers, switches, choices = self._by_kind(labels)
        deviation = (numbers - self._mean) * (-self._log_std).exp()
        misses = functional.huber_loss(deviation, torch.zeros_like(deviation), reduction="none", delta=_OUTLIER)
        misses = torch.where(self._free, misses + self._log_std, 0.0)
        # not a product: the logits of what is ruled out are the lowest numbers of the dtype
        possible = self._possible[:, :SWITCHES]
        switched = functional.softplus((1.0 - 2.0 * switches) * torch.where(possible, self._switches, 0.0))
        index = choices.long().unsqueeze(1)
        chosen = self._choices.gather(1, index).squeeze(1)
        option_possible = self._by_option(self._possible, False).gather(1, index).squeeze(1)
        return self._by_block(misses, torch.where(possible, switched, 0.0), torch.where(option_possible, -chosen, 0.0))

    def entropy(self) -> Tensor:
        """Entropies (R,) in nats: the sum of `block_entropies`."""
        return self.block_entropies().sum(1)

    def block_entropies(self) -> Tensor:
        """Entropies (R, len(BLOCKS)) of the blocks in nats, of numbers after tanh.

        Exact but for the numbers' mean logarithm of the derivative of tanh, which is right to 1e-4 for every mean and
        standard deviation.
        """
        gaussian = self._log_std + 0.5 * math.log(2.0 * math.pi * math.e)
        numbers = gaussian + _mean_log_slope(self._mean, self._log_std.exp())
        distance = self._switches.abs()
        switches = functional.softplus(-distance) + distance * torch.sigmoid(-distance)
        choices = self._likely()
        return self._by_block(torch.where(self._free, numbers, 0.0), switches, -(choices.exp() * choices).sum(1))

    def _likely(self) -> Tensor:
        """Log-probabilities of the choices' options, none so low that its exponential takes a hundred times as long."""
        return self._choices.clamp_min(_LEAST_LOG_PROB)

    def _by_option(self, entries: Tensor, missing: float | bool) -> Tensor:
        """Entries (R, SWITCHES + options) as (R, largest choice, choices), `missing` where there are fewer."""
        padded = functional.pad(entries, (0, 1), value=missing)
        return padded.index_select(1, self._tables.options).view(len(entries), max(SIZES), len(SIZES))

    def _by_kind(self, raw: Tensor) -> tuple[Tensor, ...]:
        """The columns of the numbers, the switches and the choices."""
        return torch.split(raw.index_select(1, self._order.by_kind), [NUMBERS, SWITCHES, len(SIZES)], 1)

    def _in_order(self, numbers: Tensor, switches: Tensor, choices: Tensor) -> Tensor:
        """The inverse of `_by_kind`."""
        return torch.cat((numbers, switches, choices), 1).index_select(1, self._order.in_order)

    def _by_block(self, numbers: Tensor, switches: Tensor, choices: Tensor) -> Tensor:
        """The columns of a raw action, given by kind, summed by block: (R, len(BLOCKS))."""
        columns = torch.cat((numbers, switches, choices), 1)
        return columns @ self._tables.blocks.to(columns.dtype)


def _mean_log_slope(mean: Tensor, std: Tensor) -> Tensor:
    """E[log(1 - tanh(u)^2)] for u ~ N(mean, std^2), elementwise.

    1 - tanh^2 is, but for a factor, the density of a logistic variable, which is close to a mixture of three centred
    Gaussians; the formula follows by integrating that mixture twice. Averaging it over u only widens the Gaussians, so
    the error is nowhere above its maximum at std = 0, 7.6e-5. Gauss-Hermite quadrature needs 22 nodes for 1e-3.

    The idea is that of Monahan & Stefanski, "Normal scale mixture approximations to F*(z) and computation of the
    logistic-normal integral" (1992); the weights and scales are a minimax fit to this function itself.
    """
    weights, scales = _logistic_mixture(mean.device, mean.dtype)
    variances = scales.square()
    # sqrt(2) times the standard deviations of the widened Gaussians; then E|x| for each of them, x ~ N(mean, .).
    widths = torch.sqrt(2.0 * std.square() + 2.0 * variances)
    ratio = mean / widths
    absolute = torch.add(mean * torch.erf(ratio), widths * torch.exp(-ratio.square()), alpha=1.0 / math.sqrt(math.pi))
    return 2.0 * (math.log(2.0) - (weights * absolute).sum(0))
