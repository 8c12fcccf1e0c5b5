"""The engine on the GPU, a thread for each battle: the same bytes as on the CPU, and battle steps per second."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from native.build import lower_all, read_bitcode
from native.cuda import emit_ptx
from native.ptx import compile_c, launch_c, to_c
from numpy.typing import NDArray

from benchmarks.gpu.setting import Setting, alternatives
from echelon_env import BattleEngine
from echelon_env.engine.state import SCRATCH
from echelon_env.engine.tick import DECIDE
from echelon_env.replays.image import ALIGNMENT, MemoryImage

KERNEL = "step_range"
BLOCK = 64
"""Threads of a block."""
MAPS = 16
COMPARED_EVERY = 10
"""Decisions."""

Launch = Callable[[torch.Tensor, int], None]
"""Run the kernel for argument words, and so many battles."""


def engine(setting: Setting) -> None:
    """Compare battles of some scenarios, then time many of them."""
    launch = launcher(setting)
    battles, cases = alternatives(setting, 3, 64), {}
    for scenario, decisions in alternatives(
        setting, (("duel", 12),), (("duel", 300), ("skirmish", 200), ("company", 60))
    ):
        name = f"equality: {scenario}, {battles} battles, {decisions} decisions"
        cases[name] = partial(equality, setting, launch, scenario, battles, decisions)
    for count in alternatives(setting, (2,), (64, 1024, 4096)):
        for scenario in ("skirmish", "battle"):
            cases[f"{scenario}, {count} battles"] = partial(speed, setting, launch, scenario, count)
    setting.cases(cases)


def launcher(setting: Setting) -> Launch:
    """The kernel on the GPU, whose driver translates the PTX; without a GPU on the CPU, as C."""
    export, ptx = f"echelon_{KERNEL}", emit_ptx(read_bitcode(KERNEL), KERNEL, lower_all()[KERNEL])
    if setting.small:
        with tempfile.TemporaryDirectory() as folder:
            run = compile_c([to_c(ptx, export) + launch_c(KERNEL)], Path(folder))[f"launch_{KERNEL}"]
        run.argtypes = [ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint32]
        return lambda words, battles: run(words.data_ptr(), 0, battles)
    from torch.cuda import _utils  # torch's loader of PTX is not public yet

    kernels: Any = _utils._cuda_load_module(ptx, [export])
    kernel = kernels[export]
    return lambda words, battles: kernel((-(-battles // BLOCK), 1, 1), (BLOCK, 1, 1), [words, 0, battles])


class Battles:
    """Battles in the device's memory, copied from an engine after its reset."""

    def __init__(self, setting: Setting, launch: Launch, scenario: str, battles: int) -> None:
        self.host, self._launch = BattleEngine(scenario, battles, maps=MAPS), launch
        host = self.host
        host.reset(np.arange(battles))
        rows = host.observation_rows
        arrays = host.tables, host.state, host.actions, host.out, np.zeros(1, np.int64), rows.places, rows.array
        size = sum(each.nbytes + ALIGNMENT for each in _flat(arrays)) + 2**20
        self._memory = torch.zeros(size, dtype=torch.uint8, device=setting.device)
        self._image = MemoryImage(self._memory.data_ptr())
        words = self._image.words(*arrays, 0, battles, 0, int(DECIDE))
        content = torch.frombuffer(bytearray(self._image.to_bytes()), dtype=torch.uint8)
        self._memory[: len(content)].copy_(content)
        self._words = self._memory[words - self._image.base :]
        self.actions = self._part(host.actions).view(torch.float32)

    def _part(self, array: NDArray[Any]) -> torch.Tensor:
        """The memory of one of the engine's arrays."""
        start = self._image.place(array) - self._image.base
        return self._memory[start : start + array.nbytes]

    def step(self) -> None:
        """A decision with `actions`."""
        self._launch(self._words, self.host.num_battles)

    def differing(self) -> list[str]:
        """The names of the arrays that are not the engine's."""
        host = self.host
        arrays = {name: array for name, array in host.state._asdict().items() if name not in SCRATCH}
        arrays |= host.out._asdict() | {"observations": host.observation_rows.array}
        return [name for name, each in arrays.items() if self._part(each).cpu().numpy().tobytes() != each.tobytes()]


def _flat(values: Any) -> list[NDArray[Any]]:
    """The arrays in tuples."""
    return [values] if isinstance(values, np.ndarray) else [array for each in values for array in _flat(each)]


def equality(setting: Setting, launch: Launch, scenario: str, battles: int, decisions: int) -> dict[str, float]:
    """Play the same battles on the device and on the CPU. Raises RuntimeError for an array that differs."""
    device, rng = Battles(setting, launch, scenario, battles), np.random.default_rng(5)
    for decision in range(decisions):
        actions = rng.uniform(-1.2, 1.2, device.host.actions.shape).astype(np.float32)
        device.actions.copy_(torch.from_numpy(actions.ravel()))
        device.step()
        device.host.step(actions)
        compared = decision % COMPARED_EVERY == 0 or decision == decisions - 1
        if compared and (differing := device.differing()):
            raise RuntimeError(f"after {decision + 1} decisions these arrays differ: {', '.join(differing)}")
    return {"equal decisions": float(decisions * battles)}


def speed(setting: Setting, launch: Launch, scenario: str, battles: int) -> dict[str, float]:
    """Steps of battles per second, with random actions that the device draws."""
    device, decisions = Battles(setting, launch, scenario, battles), alternatives(setting, 2, 40)
    for step in range(decisions + 10):
        if step == 10:
            began = setting.clock()
        device.actions.uniform_(-1.0, 1.0)
        device.step()
    return {"battle steps/s": decisions * battles / (setting.clock() - began)}
