"""The distribution over a mech's hybrid action: squashed Gaussian numbers, Bernoulli switches, categorical choices.

What is stored is the raw action: the numbers before tanh, switches as 0 or 1, and the index of every choice, where 0 is
none if the block has it. A float32 action at -1 or 1 no longer tells which number made it; the raw one does.
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
"""Width of a raw action: the blocks one after the other as in `BLOCKS`, a choice being one column."""

MASKS = _SWITCHES + sum(_SIZES)
"""Width of a mask: an entry for each switch, then one for each option of each choice."""

PARAMETERS = 2 * _NUMBERS + MASKS
"""Width of the policy's output: means, offsets of the log-std, and the logits of what a mask has entries for."""

_FIRST_TARGET = 2 * _NUMBERS + _MASK_STARTS["target"] + 1

TARGET_LOGITS = slice(_FIRST_TARGET, _FIRST_TARGET + TARGET_CHOICES)
"""Part of the policy's output: the logits of the contact rows as targets, without that of none."""

_LEAST_LOG_PROB = -80.0
"""The exponential of which is 2e-35: no float32 near it is subnormal."""

_LEAST_PROBABILITY = 1e-34
"""Of options that are sampled; there are no uniform numbers so small."""

_LOGISTIC_WEIGHTS = (0.3236655506, 0.5658859831, 0.1104484663)
_LOGISTIC_SCALES = (0.57648302605, 0.92086289193, 1.45848703912)


@dataclass(frozen=True)
class _Tables:
    """Where things are, as tensors of one device."""

    by_kind: Tensor  # (RAW_DIM,) raw columns: first the numbers, then the switches, then the choices
    in_order: Tensor  # (RAW_DIM,) its inverse
    options: Tensor  # (largest choice * choices,) places of the options' logits; MASKS where a choice has fewer
    features: Tensor  # (MASKS,) features of an observation that make the entries of a mask possible
    always: Tensor  # (MASKS,) bool: possible in any case
    column: Tensor  # (ACTION_DIM,) raw columns that the entries of an action follow from
    value: Tensor  # (ACTION_DIM,) what the column of a switch or a choice holds when the entry is 1
    is_number: Tensor  # (ACTION_DIM,) bool


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
    features, always = _conditions()
    with torch.inference_mode(False):  # else tables that are first needed for inference could not serve training
        places = torch.tensor(by_kind, device=device)
        return _Tables(
            by_kind=places,
            in_order=places.argsort(),
            options=torch.tensor(options, device=device),
            features=torch.tensor(features, device=device),
            always=torch.tensor(always, device=device),
            column=torch.tensor(column, device=device),
            value=torch.tensor(value, device=device),
            is_number=torch.tensor(is_number, device=device),
        )


def _conditions() -> tuple[list[int], list[bool]]:
    """For each entry of a mask the feature that makes it possible, and whether it is possible in any case."""
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
    """Bias of the policy's output layer with which a policy of small weights starts.

    Numbers have mean 0 and standard deviation `initial_std` before tanh. Triggers are pulled with probability 1/2;
    venting holds fire and has 0.1, electronics stay silent with 0.8; the other choices are uniform among what is
    possible.

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
    """What is possible, as far as the observation tells.

    A trigger needs a weapon with shots left, a target a filled contact row, ECM and ECCM a class that carries them.
    The first option of a choice, which is none or the default, is always there. The dead have only that.

    Parameters
    ----------
    observations
        (R, OBSERVATION_DIM), as the env gives them: not normalised.

    Returns
    -------
    torch.Tensor
        (R, MASKS) bool.

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
    """The action vectors of raw actions: numbers after tanh, switches and options 0 or 1.

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
    """Independent distributions of the entries of an action, for each of R rows.

    Numbers are Gaussian before tanh, with a log-std between those of `min_std` and `max_std`; switches are Bernoulli,
    choices categorical, both among what the mask allows. Works in the dtype of the parameters, float32 or float64.

    Parameters
    ----------
    parameters
        (R, PARAMETERS), the policy's output.
    masks
        (R, MASKS) bool, as `action_masks` makes them; the first option of every choice is possible.
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
        # Not minus infinity: its product with a probability of 0, in the entropy and in gradients, would be NaN.
        impossible = torch.finfo(parameters.dtype).min
        logits = torch.where(masks, logits, impossible)
        self._switches = logits[:, :_SWITCHES]
        self._tables = _tables(parameters.device)
        options = functional.pad(logits, (0, 1), value=impossible).index_select(1, self._tables.options)
        # Options before choices: a softmax over a short last axis is slow.
        self._choices = functional.log_softmax(options.view(rows, max(_SIZES), len(_SIZES)), 1)

    @torch.no_grad()
    def sample(self, noise: Tensor) -> Tensor:
        """Raw actions (R, RAW_DIM) made from standard normal numbers (R, RAW_DIM), the only source of chance.

        Discrete columns take the normal distribution function of their noise as a uniform number and invert their own.
        """
        normal, *rest = self._by_kind(noise)
        below_one = 1.0 - torch.finfo(noise.dtype).eps
        on, chosen = (torch.special.ndtr(each).clamp(max=below_one) for each in rest)
        numbers = torch.addcmul(self._mean, self._log_std.exp(), normal)
        cumulative = functional.threshold(self._likely().exp(), _LEAST_PROBABILITY, 0.0).cumsum(1)
        passed = cumulative <= (chosen * cumulative[:, -1]).unsqueeze(1)
        return self._in_order(numbers, on < torch.sigmoid(self._switches), passed.sum(1))

    @torch.no_grad()
    def mode(self) -> Tensor:
        """The most probable raw actions (R, RAW_DIM): most probable before tanh; after it, the numbers' medians."""
        return self._in_order(self._mean, self._switches > 0.0, self._choices.argmax(1))

    def log_prob(self, raw: Tensor) -> Tensor:
        """Log-probabilities (R,) of raw actions (R, RAW_DIM), as densities of the numbers after tanh.

        The logarithm of the derivative of tanh is 2 (log 2 - u - softplus(-2 u)), which has no cancellation at any u.
        What the mask rules out is about as improbable as the dtype can say.
        """
        numbers, switches, choices = self._by_kind(raw)
        deviation = (numbers - self._mean) * (-self._log_std).exp()
        slope = 2.0 * (math.log(2.0) - numbers - functional.softplus(-2.0 * numbers))
        densities = -0.5 * deviation.square() - self._log_std - 0.5 * math.log(2.0 * math.pi) - slope
        switched = -functional.softplus((1.0 - 2.0 * switches) * self._switches)
        chosen = self._choices.gather(1, choices.long().unsqueeze(1)).squeeze(1)
        return torch.cat((densities, switched, chosen), 1).sum(1)

    def entropy(self) -> Tensor:
        """Entropies (R,) in nats, of the numbers after tanh.

        Exact but for the numbers' mean logarithm of the derivative of tanh, which is right to 1e-4 for every mean and
        standard deviation.
        """
        return torch.cat(self._entropies(), 1).sum(1)

    def block_entropies(self) -> dict[str, Tensor]:
        """Entropies (R,) of every block, by its name; their sum is `entropy`."""
        entropies = torch.split(self._in_order(*self._entropies()), _RAW_WIDTHS, 1)
        return {block.name: each.sum(1) for block, each in zip(BLOCKS, entropies, strict=True)}

    def _entropies(self) -> tuple[Tensor, Tensor, Tensor]:
        """Entropies of the numbers, switches and choices, (R, columns) each."""
        gaussian = self._log_std + 0.5 * math.log(2.0 * math.pi * math.e)
        numbers = gaussian + _mean_log_slope(self._mean, self._log_std.exp())
        distance = self._switches.abs()
        switches = functional.softplus(-distance) + distance * torch.sigmoid(-distance)
        choices = self._likely()
        return numbers, switches, -(choices.exp() * choices).sum(1)

    def _likely(self) -> Tensor:
        """Log-probabilities of the choices' options, none so low that its exponential takes a hundred times as long."""
        return self._choices.clamp_min(_LEAST_LOG_PROB)

    def _by_kind(self, raw: Tensor) -> tuple[Tensor, ...]:
        """The columns of the numbers, the switches and the choices."""
        return torch.split(raw.index_select(1, self._tables.by_kind), [_NUMBERS, _SWITCHES, len(_SIZES)], 1)

    def _in_order(self, numbers: Tensor, switches: Tensor, choices: Tensor) -> Tensor:
        """The inverse of `_by_kind`."""
        return torch.cat((numbers, switches, choices), 1).index_select(1, self._tables.in_order)


def _mean_log_slope(mean: Tensor, std: Tensor) -> Tensor:
    """E[log(1 - tanh(u)^2)] for u ~ N(mean, std^2), elementwise.

    1 - tanh^2 is, but for a factor, the density of a logistic variable, which is close to a mixture of three centred
    Gaussians; the formula follows by integrating that mixture twice. Averaging it over u only widens the Gaussians, so
    the error is nowhere above its maximum at std = 0, 7.6e-5. Gauss-Hermite quadrature needs 22 nodes for 1e-3.

    The idea is that of Monahan & Stefanski, "Normal scale mixture approximations to F*(z) and computation of the
    logistic-normal integral" (1992); the weights and scales are a minimax fit to this function itself.
    """
    weights = mean.new_tensor(_LOGISTIC_WEIGHTS).view(-1, 1, 1)
    variances = mean.new_tensor(_LOGISTIC_SCALES).view(-1, 1, 1).square()
    # sqrt(2) times the standard deviations of the widened Gaussians; then E|x| for each of them, x ~ N(mean, .).
    widths = torch.sqrt(2.0 * std.square() + 2.0 * variances)
    ratio = mean / widths
    absolute = torch.add(mean * torch.erf(ratio), widths * torch.exp(-ratio.square()), alpha=1.0 / math.sqrt(math.pi))
    return 2.0 * (math.log(2.0) - (weights * absolute).sum(0))
