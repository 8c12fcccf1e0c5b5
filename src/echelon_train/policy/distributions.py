"""The distribution over a mech's hybrid action: tanh-squashed Gaussian, Bernoulli and categorical parts.

The rollout buffer stores raw actions: continuous entries ("numbers") before tanh, switches as 0 or 1, and one option
index for each choice. Option 0 is "none" in blocks that have it. Raw actions are needed for log-probabilities: float32
tanh saturates at -1 and 1 and cannot be inverted there.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor
from torch.nn import functional

from echelon_env.layout.actions import TARGET_CHOICES, Action
from echelon_env.layout.observations import OBSERVATION_DIM, STREAMS, Self
from echelon_env.spaces.actions import BLOCKS

_BY_KIND = {kind: [block for block in BLOCKS if block.kind == kind] for kind in ("numbers", "switches", "choice")}
_CHOICES = _BY_KIND["choice"]
_SIZES = [block.choices for block in _CHOICES]
_NUMBERS = sum(len(block.entries) for block in _BY_KIND["numbers"])
_SWITCHES = sum(len(block.entries) for block in _BY_KIND["switches"])

_RAW_WIDTHS = [1 if block.kind == "choice" else len(block.entries) for block in BLOCKS]
_RAW_COLUMNS = {
    block.name: range(stop - width, stop)
    for block, width, stop in zip(BLOCKS, _RAW_WIDTHS, accumulate(_RAW_WIDTHS), strict=True)
}

_MASK_STARTS = {
    block.name: _SWITCHES + stop - size for block, size, stop in zip(_CHOICES, _SIZES, accumulate(_SIZES), strict=True)
}

RAW_DIM = sum(_RAW_WIDTHS)
"""Width of a raw action: the blocks in the order of `BLOCKS`; a choice takes one column."""

MASKS = _SWITCHES + sum(_SIZES)
"""Width of an action mask: one entry for each switch, then one for each option of each choice."""

PARAMETERS = 2 * _NUMBERS + MASKS
"""Width of the policy's output: means and log-std offsets of the numbers, then one logit for each entry of a mask."""

_FIRST_TARGET = 2 * _NUMBERS + _MASK_STARTS["target"] + 1

TARGET_LOGITS = slice(_FIRST_TARGET, _FIRST_TARGET + TARGET_CHOICES)
"""Columns of the policy's output with the target logits of the contact rows; the logit of "no target" is outside."""

_MIN_LOG_PROB = -80.0
"""Lower bound of log-probabilities before exp: exp(-80) is 2e-35, above float32's subnormal numbers, which are slow."""

_MIN_PROBABILITY = 1e-34
"""Options below this probability are never sampled: the noise does not resolve such small probabilities."""

_LOGISTIC_WEIGHTS = (0.3236655506, 0.5658859831, 0.1104484663)
_LOGISTIC_SCALES = (0.57648302605, 0.92086289193, 1.45848703912)


@dataclass(frozen=True)
class _Tables:
    """Index tensors on one device that map between raw actions, logits, masks and action vectors."""

    by_kind: Tensor  # (RAW_DIM,) raw columns sorted by kind: numbers, switches, choices
    by_block: Tensor  # (RAW_DIM,) the inverse permutation
    options: Tensor  # (max options * choices,) column of each option's logit; MASKS where a choice has fewer options
    features: Tensor  # (MASKS,) observation feature that allows each entry of a mask
    always: Tensor  # (MASKS,) bool: entries that are allowed in every observation
    column: Tensor  # (ACTION_DIM,) raw column of each entry of the action vector
    value: Tensor  # (ACTION_DIM,) value of that column at which a switch's or an option's entry is 1
    is_number: Tensor  # (ACTION_DIM,) bool: continuous entries


@functools.cache
def _tables(device: torch.device) -> _Tables:
    by_kind = [column for blocks in _BY_KIND.values() for block in blocks for column in _RAW_COLUMNS[block.name]]
    options = [
        _MASK_STARTS[block.name] + option if option < block.choices else MASKS
        for option in range(max(_SIZES))
        for block in _CHOICES
    ]
    column, value, is_number = [], [], []
    for block in BLOCKS:
        for i in range(len(block.entries)):
            column.append(_RAW_COLUMNS[block.name][0 if block.kind == "choice" else i])
            value.append(float(i + block.optional if block.kind == "choice" else 1))
            is_number.append(block.kind == "numbers")
    features, always = _mask_features()
    with torch.inference_mode(False):  # autograd cannot save tensors that were created in inference mode
        columns = torch.tensor(by_kind, device=device)
        return _Tables(
            by_kind=columns,
            by_block=columns.argsort(),
            options=torch.tensor(options, device=device),
            features=torch.tensor(features, device=device),
            always=torch.tensor(always, device=device),
            column=torch.tensor(column, device=device),
            value=torch.tensor(value, device=device),
            is_number=torch.tensor(is_number, device=device),
        )


def _mask_features() -> tuple[list[int], list[bool]]:
    """For each entry of a mask: the observation feature that allows it, and whether it is always allowed."""
    own, contacts = STREAMS["self"].start, STREAMS["contacts_mask"].start
    alive = own + Self.ALIVE
    needs = {
        Action.PRIMARY: own + Self.HAS_PRIMARY,
        Action.SECONDARY: own + Self.HAS_SECONDARY,
        Action.TERTIARY: own + Self.HAS_TERTIARY,
        Action.SPECIAL: own + Self.HAS_SPECIAL,
        Action.ECM: own + Self.HAS_ELECTRONICS,
        Action.ECCM: own + Self.HAS_ELECTRONICS,
        **{entry: contacts + entry - Action.TARGET_0 for entry in tuple(Action)[Action.TARGET_0 : Action.TARGET_4 + 1]},
    }
    features: list[int] = []
    always: list[bool] = []
    for block in (*_BY_KIND["switches"], *_CHOICES):
        options = [alive] * block.optional + [needs.get(entry, alive) for entry in block.entries]
        features += options
        always += [block.kind == "choice" and option == 0 for option in range(len(options))]
    return features, always


def parameter_bias(initial_std: float, min_std: float, max_std: float) -> Tensor:
    """Initial bias of the policy's output layer; with small weights it determines the initial distribution.

    Numbers have mean 0 and standard deviation `initial_std` before tanh. A trigger is pulled with probability 1/2.
    Venting has probability 0.1, because it stops a mech's fire. Electronics stay silent with probability 0.8. All other
    choices are uniform over the allowed options.

    Returns
    -------
    torch.Tensor
        (PARAMETERS,) float32.

    Raises
    ------
    ValueError
        Unless 0 < min_std < initial_std < max_std.
    """
    if not 0 < min_std < initial_std < max_std:
        raise ValueError(
            f"expected 0 < min_std < initial_std < max_std, got min_std {min_std}, initial_std {initial_std}, "
            f"max_std {max_std}"
        )
    share = math.log(initial_std / min_std) / math.log(max_std / min_std)
    logits: list[float] = []
    for block in (*_BY_KIND["switches"], *_CHOICES):
        if block.kind == "switches":
            logits += [_logit(0.1) if entry is Action.VENT else 0.0 for entry in block.entries]
        else:
            silent = math.log(0.8 / 0.1) if block.name == "electronics" else 0.0
            logits += [silent] + [0.0] * (block.choices - 1)
    return torch.tensor([0.0] * _NUMBERS + [_logit(share)] * _NUMBERS + logits)


def _logit(probability: float) -> float:
    return math.log(probability / (1.0 - probability))


def action_masks(observations: Tensor) -> Tensor:
    """Masks of the allowed switches and options, derived from observations.

    A trigger needs a weapon with shots left. A target needs a filled contact row. ECM and ECCM need a mech class that
    carries them. The first option of a choice ("none" or the default) is always allowed. A dead mech may do nothing
    else.

    Parameters
    ----------
    observations
        (R, OBSERVATION_DIM), as the environment returns them: not normalised.

    Returns
    -------
    torch.Tensor
        (R, MASKS) bool, True where allowed.

    Raises
    ------
    ValueError
        For observations of another width.
    """
    if observations.ndim != 2 or observations.shape[1] != OBSERVATION_DIM:
        raise ValueError(f"expected observations (R, {OBSERVATION_DIM}), got {tuple(observations.shape)}")
    tables = _tables(observations.device)
    return (observations.index_select(1, tables.features) > 0.5) | tables.always


def environment_actions(raw: Tensor) -> Tensor:
    """Convert raw actions to the environment's action vectors: numbers after tanh, switches and options as 0 or 1.

    Parameters
    ----------
    raw
        (R, RAW_DIM).

    Returns
    -------
    torch.Tensor
        (R, ACTION_DIM) float32 in [-1, 1], in the order of `Action`.
    """
    tables = _tables(raw.device)
    columns = raw.index_select(1, tables.column).float()
    return torch.where(tables.is_number, columns.tanh(), columns == tables.value)


class HybridDistribution:
    """Action distribution of R rows; the entries of an action are independent.

    Numbers are Gaussian before tanh, with a standard deviation between `min_std` and `max_std`. Switches are Bernoulli
    and choices categorical, both restricted by the mask. Computes in the dtype of the parameters, float32 or float64.

    Parameters
    ----------
    parameters
        (R, PARAMETERS), the policy's output.
    masks
        (R, MASKS) bool, from `action_masks`; the first option of every choice must be allowed.
    min_std, max_std
        Bounds of the standard deviation before tanh.

    Raises
    ------
    ValueError
        For parameters or masks of another shape.
    """

    def __init__(self, parameters: Tensor, masks: Tensor, min_std: float, max_std: float) -> None:
        rows = len(parameters)
        if parameters.shape != (rows, PARAMETERS) or masks.shape != (rows, MASKS):
            raise ValueError(
                f"expected parameters (R, {PARAMETERS}) and masks (R, {MASKS}), got {tuple(parameters.shape)} and "
                f"{tuple(masks.shape)}"
            )
        self._mean, offsets, logits = torch.split(parameters, [_NUMBERS, _NUMBERS, MASKS], 1)
        self._log_std = math.log(min_std) + math.log(max_std / min_std) * torch.sigmoid(offsets)
        # A finite value: minus infinity times a probability of 0, in the entropy and in gradients, would be NaN.
        impossible = torch.finfo(parameters.dtype).min
        logits = torch.where(masks, logits, impossible)
        self._switches = logits[:, :_SWITCHES]
        self._tables = _tables(parameters.device)
        options = functional.pad(logits, (0, 1), value=impossible).index_select(1, self._tables.options)
        # (rows, options, choices): a softmax over a short last axis is slow.
        self._choices = functional.log_softmax(options.view(rows, max(_SIZES), len(_SIZES)), 1)

    @torch.no_grad()
    def sample(self, noise: Tensor) -> Tensor:
        """Sample raw actions (R, RAW_DIM) from standard normal `noise` (R, RAW_DIM), the only source of randomness.

        Discrete columns are sampled by inverse transform: the normal CDF of their noise is the uniform number.
        """
        normal, *rest = self._by_kind(noise)
        below_one = 1.0 - torch.finfo(noise.dtype).eps
        on, chosen = (torch.special.ndtr(each).clamp(max=below_one) for each in rest)
        numbers = torch.addcmul(self._mean, self._log_std.exp(), normal)
        cumulative = functional.threshold(self._choice_log_probs().exp(), _MIN_PROBABILITY, 0.0).cumsum(1)
        passed = cumulative <= (chosen * cumulative[:, -1]).unsqueeze(1)
        return self._by_block(numbers, on < torch.sigmoid(self._switches), passed.sum(1))

    @torch.no_grad()
    def mode(self) -> Tensor:
        """The mode before tanh (R, RAW_DIM). After tanh the numbers are the median of their distribution."""
        return self._by_block(self._mean, self._switches > 0.0, self._choices.argmax(1))

    def log_prob(self, raw: Tensor) -> Tensor:
        """Log-probabilities (R,) of raw actions (R, RAW_DIM); numbers contribute their density after tanh.

        log(d tanh(u) / du) is computed as 2 (log 2 - u - softplus(-2 u)), which has no cancellation at any u. Masked
        options have a finite log-probability near the dtype's lowest number.
        """
        numbers, switches, choices = self._by_kind(raw)
        deviation = (numbers - self._mean) * (-self._log_std).exp()
        slope = 2.0 * (math.log(2.0) - numbers - functional.softplus(-2.0 * numbers))
        densities = -0.5 * deviation.square() - self._log_std - 0.5 * math.log(2.0 * math.pi) - slope
        switched = -functional.softplus((1.0 - 2.0 * switches) * self._switches)
        chosen = self._choices.gather(1, choices.long().unsqueeze(1)).squeeze(1)
        return torch.cat((densities, switched, chosen), 1).sum(1)

    def entropy(self) -> Tensor:
        """Entropies (R,) in nats; numbers contribute their entropy after tanh.

        Exact, except that the expected log-derivative of tanh has an error of up to 1e-4 for each number, at any mean
        and standard deviation.
        """
        return torch.cat(self._entropies(), 1).sum(1)

    def block_entropies(self) -> dict[str, Tensor]:
        """Entropies (R,) of each block by name; their sum is `entropy`."""
        entropies = torch.split(self._by_block(*self._entropies()), _RAW_WIDTHS, 1)
        return {block.name: each.sum(1) for block, each in zip(BLOCKS, entropies, strict=True)}

    def _entropies(self) -> tuple[Tensor, Tensor, Tensor]:
        """Entropies of the numbers, switches and choices, (R, columns) each."""
        gaussian = self._log_std + 0.5 * math.log(2.0 * math.pi * math.e)
        numbers = gaussian + _expected_log_slope(self._mean, self._log_std.exp())
        distance = self._switches.abs()
        switches = functional.softplus(-distance) + distance * torch.sigmoid(-distance)
        choices = self._choice_log_probs()
        return numbers, switches, -(choices.exp() * choices).sum(1)

    def _choice_log_probs(self) -> Tensor:
        """Log-probabilities of the options, clamped: exp is a hundred times slower where its result is subnormal."""
        return self._choices.clamp_min(_MIN_LOG_PROB)

    def _by_kind(self, raw: Tensor) -> tuple[Tensor, ...]:
        """Split raw columns into numbers, switches and choices, (R, columns) each."""
        return torch.split(raw.index_select(1, self._tables.by_kind), [_NUMBERS, _SWITCHES, len(_SIZES)], 1)

    def _by_block(self, numbers: Tensor, switches: Tensor, choices: Tensor) -> Tensor:
        """The inverse of `_by_kind`: raw columns (R, RAW_DIM) in the order of `BLOCKS`."""
        return torch.cat((numbers, switches, choices), 1).index_select(1, self._tables.by_block)


def _expected_log_slope(mean: Tensor, std: Tensor) -> Tensor:
    """E[log(1 - tanh(u)^2)] for u ~ N(mean, std^2), elementwise.

    Up to a factor, 1 - tanh^2 is a logistic density, which a mixture of three centred Gaussians approximates well.
    Integrating the mixture twice gives the formula. The expectation over u only widens the Gaussians, so the error is
    largest at std = 0, where it is 7.6e-5. Gauss-Hermite quadrature needs 22 nodes for 1e-3.

    The approximation follows Monahan & Stefanski, "Normal scale mixture approximations to F*(z) and computation of the
    logistic-normal integral" (1992). The weights and scales are a minimax fit to this function.
    """
    weights = mean.new_tensor(_LOGISTIC_WEIGHTS).view(-1, 1, 1)
    variances = mean.new_tensor(_LOGISTIC_SCALES).view(-1, 1, 1).square()
    # sqrt(2) times the standard deviations of the widened Gaussians, then E|x| of each
    widths = torch.sqrt(2.0 * std.square() + 2.0 * variances)
    ratio = mean / widths
    absolute = torch.add(mean * torch.erf(ratio), widths * torch.exp(-ratio.square()), alpha=1.0 / math.sqrt(math.pi))
    return 2.0 * (math.log(2.0) - (weights * absolute).sum(0))
