"""Memory of a rollout and of a minibatch by its size."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from benchmarks.gpu.setting import Setting, alternatives, products
from benchmarks.gpu.speed import WAYS
from benchmarks.gpu.training import COEFFICIENTS, Trainer, config_of
from benchmarks.training import nested_bytes
from echelon_train.ppo.losses import losses


def memory(setting: Setting) -> None:
    """Measure minibatches of several sizes at two widths."""
    sizes = alternatives(setting, (20, 40), (4_096, 16_384, 65_536))
    ways = ("sparse", "dense")
    cases = {
        f"{way}, width {width}, minibatches of {size}": partial(measure, setting, width, size, way)
        for size, width, way in products(sizes, alternatives(setting, (8,), (128, 512)), ways)
    }
    setting.cases(cases)


def measure(setting: Setting, width: int, size: int, way: str) -> dict[str, Any]:
    """Bytes per sample of the rollout, of a minibatch and of what its backward pass keeps, and the peak of the GPU."""
    battles = alternatives(setting, 4, -(-size // (5 * 32)))
    trainer = Trainer(setting, config_of(setting, "skirmish", battles, width), **WAYS[way])
    try:
        trainer.collect()
        model = trainer.model
        buffer, policy = model.rollout_buffer, model.policy
        policy.set_training_mode(True)  # cuDNN's LSTM has no backward pass otherwise
        chunks = torch.arange(size // model.chunk)
        clock = setting.clock()
        if not setting.small:
            torch.cuda.reset_peak_memory_stats(setting.device)
            before = torch.cuda.memory_allocated(setting.device)
        batch = buffer.batch(chunks, buffer.advantages, buffer.loss_mask())
        kept: dict[int, int] = {}
        with torch.autograd.graph.saved_tensors_hooks(partial(_count, kept), lambda tensor: tensor):
            totals = batch.actor_mask.sum().float(), batch.loss_mask.sum().float()
            total = losses(policy, batch, policy.return_normalizer, COEFFICIENTS, *totals).total
        total.backward()  # type: ignore[no-untyped-call]
        samples = len(batch.actions)
        numbers = {
            "rollout, bytes a sample": nested_bytes(vars(buffer).values()) / trainer.samples,
            "minibatch, bytes a sample": nested_bytes(batch) / samples,
            "kept for the backward pass, bytes a sample": sum(kept.values()) / samples,
            "forward and backward, s": setting.clock() - clock,
        }
        if not setting.small:
            peak = torch.cuda.max_memory_allocated(setting.device) - before
            numbers["GPU memory of the minibatch at the peak, GB"] = peak / 1e9
        return numbers
    finally:
        trainer.close()


def _count(kept: dict[int, int], tensor: torch.Tensor) -> torch.Tensor:
    """Count the memory behind a tensor, once."""
    storage = tensor.untyped_storage()
    kept[storage.data_ptr()] = storage.nbytes()
    return tensor
