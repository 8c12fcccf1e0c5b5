"""Battles in a GPU's memory: the same bytes as on the CPU, and battle steps per second."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from native.ptx import compile_kernels

from benchmarks.gpu.setting import Setting, alternatives
from echelon_env.engine.kernels import gpu_code
from echelon_env.gpu import TorchBattleEnv
from echelon_env.gpu.memory import KERNELS, Launch
from echelon_env.spaces.actions import choice_sizes

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


def differing(expected: Any, found: Any, where: str = "result") -> list[str]:
    """The places in nested dicts and tuples where arrays or tensors, of any device, have other bytes or types."""
    if isinstance(expected, dict):
        if expected.keys() != found.keys():
            return [f"{where}: other names"]
        return [each for name in expected for each in differing(expected[name], found[name], f"{where}, {name}")]
    if isinstance(expected, tuple):
        pairs = enumerate(zip(expected, found, strict=True))
        return [each for number, pair in pairs for each in differing(*pair, f"{where}, {number}")]
    one, other = (np.asarray(each.cpu() if isinstance(each, torch.Tensor) else each) for each in (expected, found))
    same = (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    return [] if same else [where]


def what_counts(step: tuple[Any, ...]) -> tuple[Any, ...]:
    """A step's results, and the final ones of the battles that have ended only."""
    *results, infos = step
    counts = {name: each for name, each in infos.items() if name not in ("final_obs", "final_info")}
    if "_final_obs" in infos:
        done = infos["_final_obs"]
        counts |= {"final_obs": infos["final_obs"][done]}
        counts |= {"final_info": {name: each[done] for name, each in infos["final_info"].items()}}
    return (*results, counts)


def equality(setting: Setting, scenario: str, battles: int, decisions: int) -> dict[str, float]:
    """Play the same battles on the device, in a CUDA graph, and on the CPU. Raises RuntimeError for what differs."""
    host, device = (
        kind(
            scenario, battles, device=where, action="multi_discrete", autoreset_mode="SAME_STEP",
            maps=alternatives(setting, 2, 16), max_steps=alternatives(setting, 8, 50),
        )
        for kind, where in ((TorchBattleEnv, "cpu"), (OnDevice, setting.device))
    )  # fmt: skip
    shape = battles, host.num_mechs, *(host.single_action_space.shape or ())
    buffer, sizes = (
        torch.zeros(shape, dtype=torch.int64, device=setting.device),
        torch.tensor(choice_sizes("multi_discrete")),
    )

    def play(envs: TorchBattleEnv, actions: torch.Tensor) -> Any:
        return (*envs.step(actions), envs.action_masks(), envs.state(0), envs.state(1))

    host.reset(seed=3)
    device.reset(seed=3)
    replay = recorded(setting, lambda: play(device, buffer))
    device.reset(seed=3)  # recording has taken decisions
    random, half = torch.Generator().manual_seed(5), np.arange(battles) % 2 == 0
    for decision in range(decisions):
        actions = (torch.rand(shape, generator=random) * sizes).long()
        buffer.copy_(actions)
        *of_step, masks, blue, red = play(host, actions)
        *found, masks_there, blue_there, red_there = replay()
        wrong = differing(what_counts(tuple(of_step)), what_counts(tuple(found)), "step")
        wrong += differing((masks, blue, red), (masks_there, blue_there, red_there), "masks and states")
        if decision % COMPARED_EVERY == COMPARED_EVERY // 2:
            options = {"reset_mask": half}
            wrong += differing(host.reset(options=options), device.reset(options=options), "reset")
            wrong += differing(host.snapshot(), device.snapshot(), "snapshot")
        if wrong:
            raise RuntimeError(f"after {decision + 1} decisions these differ: {'; '.join(wrong)}")
    return {"equal decisions": float(decisions * battles)}


def recorded(setting: Setting, function: Callable[[], Any]) -> Callable[[], Any]:
    """A function whose kernels are replayed, and which returns the same tensors every time; itself without a GPU."""
    if setting.small:
        return function
    function()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = function()

    def replay() -> Any:
        graph.replay()
        return results

    return replay


def speed(setting: Setting, scenario: str, battles: int) -> dict[str, float]:
    """Steps of battles per second, with random actions that the device draws, in a CUDA graph."""
    env = OnDevice(scenario, battles, device=setting.device, maps=alternatives(setting, 2, 64))
    env.reset(seed=1)
    actions = torch.zeros(battles, env.num_mechs, 27, device=setting.device)

    replay = recorded(setting, lambda: env.step(actions))
    decisions = alternatives(setting, 2, 40)
    for decision in range(decisions + 10):
        if decision == 10:
            began = setting.clock()
        actions.uniform_(-1.0, 1.0)
        replay()
    return {"battle steps/s": decisions * battles / (setting.clock() - began)}
