"""Log-probabilities, values, entropies and gradients of a minibatch beside those of the CPU in float32.

With CUDA graphs only the gradient, as the rest is not recorded.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

import torch

from benchmarks.gpu.setting import Setting, alternatives
from benchmarks.gpu.speed import WAYS
from benchmarks.gpu.training import COEFFICIENTS, Trainer, config_of, rebuilt
from echelon_env.layout.observations import OBSERVATION_DIM, STREAMS
from echelon_train.ppo.losses import add_gradients, recurrent_states

CHANGE = 0.02
"""Standard deviation of what is added to every weight after the rollout, so that probability ratios are not 1."""
CALLS = 3
"""Of recorded losses: the first call records them, the others replay them."""
TYPES = {"float32": None, "bfloat16": torch.bfloat16}
"""Of the encoders."""


def equality(setting: Setting) -> None:
    """Compare the ways of computing in both types: without CUDA graphs at two widths, then with them at the first."""
    cases: dict[tuple[bool, str], Callable[[], dict[str, float]]] = {}
    plain = list(WAYS)[:2]
    widths = alternatives(setting, (8,), (128, 512))
    for width in widths:
        reference = on_the_cpu(setting, width)
        expected = results(reference.model, None)
        recorded = [] if setting.small or width > widths[0] else list(WAYS)[2:]
        cases |= {
            (way in recorded, f"{way}, {name}, width {width}"): partial(
                compare, setting, reference, expected, WAYS[way], dtype
            )
            for name, dtype in TYPES.items()
            for way in plain + recorded
        }
        reference.close()
    setting.cases({name: cases[last, name] for last, name in sorted(cases, key=lambda key: key[0])})


def on_the_cpu(setting: Setting, width: int) -> Trainer:
    """A trainer on the CPU with a rollout, and weights that have changed since.

    In every chunk some mechs are dead until their next battle begins.
    """
    config = config_of(setting, "skirmish", alternatives(setting, 4, 16), width, batch_size=2_560)
    trainer = Trainer(replace(setting, device=torch.device("cpu")), config)
    trainer.collect()
    buffer = trainer.model.rollout_buffer
    by_chunk = slice(None), slice(1, buffer.chunk // 2), slice(None, None, 2)
    shape = -1, buffer.chunk, buffer.num_rows
    seen = buffer.observations.view(*shape, OBSERVATION_DIM)
    objective = STREAMS["objective"].part
    kept = seen[(*by_chunk, objective)].clone()
    seen[by_chunk] = 0.0
    seen[(*by_chunk, objective)] = kept  # all that a dead mech observes
    buffer.actor_mask.view(shape)[by_chunk] = False
    buffer.episode_starts.view(shape)[:, buffer.chunk // 2, ::2] = True
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in trainer.model.policy.parameters():
            parameter.add_(CHANGE * torch.randn(parameter.shape, generator=generator))
    return trainer


def compare(
    setting: Setting, reference: Trainer, expected: dict[str, Any], way: dict[str, Any], dtype: torch.dtype | None
) -> dict[str, float]:
    """Largest differences of log-probabilities (of whole actions), values and entropies, and the gradients' distance.

    The distance is relative: the norm of the difference over the norm of the CPU's gradient.
    """
    backends: tuple[Any, ...] = torch.backends.cudnn, torch.backends.cuda.matmul
    before = [each.allow_tf32 for each in backends]
    model = copied(reference.model, setting.device, way)
    try:
        for each in backends:
            each.allow_tf32 = dtype is not None  # it has 10 bits
        found = results(model, dtype)
    finally:
        for each, allowed in zip(backends, before, strict=True):
            each.allow_tf32 = allowed
    numbers: dict[str, float] = {
        name: float((found[name] - expected[name]).abs().max())
        for name in ("log-probability", "value", "entropy")
        if name in found
    }
    distance = (found["gradient"] - expected["gradient"]).norm() / expected["gradient"].norm()
    return {**numbers, "gradient, relative": float(distance)}


def copied(model: Any, device: torch.device, way: dict[str, Any]) -> Any:
    """A model on a device with the weights and the rollout of another."""
    twin = copy.copy(model)
    twin.device = device
    rebuilt(twin, **way)
    buffer, source = twin.rollout_buffer, model.rollout_buffer
    for name, tensor in vars(source).items():
        if isinstance(tensor, torch.Tensor):
            getattr(buffer, name).copy_(tensor)
    for kept, state in zip(buffer.states, source.states, strict=True):
        kept.copy_(state)
    return twin


def results(model: Any, dtype: torch.dtype | None) -> dict[str, torch.Tensor]:
    """Numbers of a model's rollout on the CPU: values of all samples, others of living mechs', step after step.

    Of recorded losses only the gradient, of the last of some calls.
    """
    policy, buffer = model.policy, model.rollout_buffer
    policy.set_training_mode(True)
    policy.encoding_dtype = dtype
    mask = buffer.loss_mask()
    chunks = torch.arange(buffer.num_chunks)
    batch = buffer.batch(chunks, buffer.advantages, mask)
    totals = batch.actor_mask.sum().float(), batch.loss_mask.sum().float()
    plain = model.update.add_gradients is add_gradients
    for _ in range(1 if plain else CALLS):
        policy.zero_grad()
        model.update.add_gradients(policy, batch, policy.return_normalizer, COEFFICIENTS, *totals)
    gradient = torch.cat([each.grad.flatten() for each in policy.parameters() if each.grad is not None])
    if not plain:
        return {"gradient": gradient.float().cpu()}
    with torch.no_grad():
        active = None if policy.dense else batch.actor_mask.nonzero().flatten()
        states = recurrent_states(batch.states)
        found = policy.evaluate(batch.observations, batch.actions, states, batch.sequences, active)
        living = in_order(buffer, chunks)
        values = found.values.flatten()
        if policy.dense:
            log_probs, entropy = found.log_probs[living], found.entropy[living]
        else:  # samples of living mechs come first, in their order
            log_probs, entropy = found.log_probs, found.entropy
            values = torch.empty_like(values).index_copy(0, living.argsort(descending=True, stable=True), values)
    numbers = {"log-probability": log_probs.sum(1), "entropy": entropy.sum(1), "value": values, "gradient": gradient}
    return {name: each.detach().float().cpu() for name, each in numbers.items()}


def in_order(buffer: Any, chunks: torch.Tensor) -> torch.Tensor:
    """Which samples of some chunks are of living mechs, (S,) bool, step after step."""
    with mock.patch.object(buffer, "dense", True):
        mask: torch.Tensor = buffer.batch(chunks, buffer.advantages, buffer.loss_mask()).actor_mask
    return mask
