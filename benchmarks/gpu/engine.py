"""Battles in a GPU's memory: the same bytes as on the CPU, and battle steps per second."""

from __future__ import annotations

import tempfile
from functools import cache, partial
from pathlib import Path

import torch
from native.ptx import compile_kernels

from benchmarks.gpu.setting import Setting, alternatives
from echelon_env.engine.kernels import gpu_code
from echelon_env.gpu import TorchBattleEnv
from echelon_env.gpu.memory import KERNELS, Launch

COMPARED_EVERY = 10
"""Decisions."""


class OnDevice(TorchBattleEnv):
    """Battles of which a GPU runs the kernels. On the CPU, their PTX runs as C."""

    def _launcher(self) -> Launch:
        return super()._launcher() or kernels_as_c()


@cache
def kernels_as_c() -> Launch:
    """What runs the kernels' PTX on the CPU."""
    with tempfile.TemporaryDirectory() as folder:
        run = compile_kernels(gpu_code(), KERNELS, Path(folder))
    return lambda kernel, words, count: run(kernel, words.data_ptr(), count)


def engine(setting: Setting) -> None:
    """Compare battles of some scenarios, then time many of them."""
    battles, cases = alternatives(setting, 3, 64), {}
    for scenario, decisions in alternatives(
        setting, (("duel", 12),), (("duel", 300), ("skirmish", 200), ("company", 60))
    ):
        name = f"equality: {scenario}, {battles} battles, {decisions} decisions"
        cases[name] = partial(equality, setting, scenario, battles, decisions)
    for count in alternatives(setting, (2,), (1024, 4096, 64)):
        for scenario in ("skirmish", "battle"):
            cases[f"{scenario}, {count} battles"] = partial(speed, setting, scenario, count)
    setting.cases(cases)


def equality(setting: Setting, scenario: str, battles: int, decisions: int) -> dict[str, float]:
    """Play the same battles on the device and on the CPU. Raises RuntimeError for what differs."""
    maps = alternatives(setting, 2, 16)
    device = OnDevice(scenario, battles, device=setting.device, maps=maps, max_steps=100)
    host = TorchBattleEnv(scenario, battles, device="cpu", maps=maps, max_steps=100)
    device.reset(seed=3)
    host.reset(seed=3)
    random = torch.Generator().manual_seed(5)
    for decision in range(decisions):
        actions = torch.rand(battles, host.num_mechs, 27, generator=random) * 2.4 - 1.2
        results = zip(host.step(actions)[:4], device.step(actions.to(setting.device))[:4], strict=True)
        if not all(torch.equal(one, other.cpu()) for one, other in results):
            raise RuntimeError(f"decision {decision + 1} has other results")
        if decision % COMPARED_EVERY == 0 or decision == decisions - 1:
            expected, found = host.snapshot(), device.snapshot()
            differing = [name for name, array in expected.items() if array.tobytes() != found[name].tobytes()]
            if differing:
                raise RuntimeError(f"after {decision + 1} decisions these arrays differ: {', '.join(differing)}")
    return {"equal decisions": float(decisions * battles)}


def speed(setting: Setting, scenario: str, battles: int) -> dict[str, float]:
    """Steps of battles per second, with random actions that the device draws, in a CUDA graph."""
    env = OnDevice(scenario, battles, device=setting.device, maps=alternatives(setting, 2, 64))
    env.reset(seed=1)
    actions = torch.zeros(battles, env.num_mechs, 27, device=setting.device)

    def step() -> object:
        return env.step(actions)

    decisions, replay = alternatives(setting, 2, 40), step
    if not setting.small:
        step()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        replay = graph.replay
    for decision in range(decisions + 10):
        if decision == 10:
            began = setting.clock()
        actions.uniform_(-1.0, 1.0)
        replay()
    return {"battle steps/s": decisions * battles / (setting.clock() - began)}
