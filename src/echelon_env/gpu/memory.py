"""Arrays in a device's memory, and the kernels that work on them there."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from echelon_env.config.schema import ConfigError
from echelon_env.engine.kernels import gpu_code
from echelon_env.replays.image import encode_words

KERNELS = ("load_maps", "play_range", "find_possibilities", "write_global_states")
"""The entry points that GPUs have."""

BLOCK = 32
"""Threads of a block: a warp, so that few battles use many multiprocessors."""

OLDEST = (8, 0)
"""The compute capability that the kernels need: Ampere's."""

Launch = Callable[[str, Tensor, int], None]
"""Run a kernel by name, given its argument words on the device, once for each number below a limit."""


class DeviceMemory:
    """Copies of NumPy arrays in a device's memory.

    The arrays stand for their copies: their shapes and dtypes count, not what they hold later.

    Parameters
    ----------
    device
        The device.
    launch
        What runs kernels there.
    """

    def __init__(self, device: torch.device, launch: Launch) -> None:
        self.device, self._launch = device, launch
        self._placed: list[tuple[NDArray[Any], Tensor]] = []

    def zeros(self, array: NDArray[Any]) -> Tensor:
        """Place an array of zeros. Returns its bytes (N,) uint8."""
        memory = torch.zeros(max(1, array.nbytes), dtype=torch.uint8, device=self.device)
        self._placed.append((array, memory))
        return memory

    def bytes_of(self, array: NDArray[Any]) -> Tensor:
        """The bytes (N,) uint8 of an array, or of a part of one. One that is not placed yet is copied."""
        start = array.ctypes.data
        for other, memory in self._placed:
            offset = start - other.ctypes.data
            if 0 <= offset < max(1, other.nbytes):
                return memory[offset : offset + array.nbytes]
        memory = self.zeros(array)
        self.write(array)
        return memory[: array.nbytes]

    def write(self, array: NDArray[Any]) -> None:
        """Copy what a placed array holds."""
        if array.nbytes:
            self.bytes_of(array).copy_(torch.from_numpy(array.reshape(-1).view(np.uint8)))

    def read(self, array: NDArray[Any], battle: int | None = None) -> NDArray[Any]:
        """What the device has of a placed array, or of one of its rows: a new array."""
        chosen = array if battle is None else array[battle : battle + 1]
        return self.bytes_of(chosen).cpu().numpy().copy().view(chosen.dtype).reshape(chosen.shape)

    def tensor(self, array: NDArray[Any], field: str | None = None) -> Tensor:
        """A placed array of numbers, or a field of its records, as a tensor: a view of the device's memory."""
        dtype, offset = array.dtype, 0
        if field is not None:
            assert dtype.fields is not None
            dtype, offset = dtype.fields[field][:2]
        number, inner = dtype.subdtype or (dtype, ())
        numbers = self.bytes_of(array).view(torch.from_numpy(np.zeros(0, number)).dtype)
        steps = [each // number.itemsize for each in array.strides]
        for axis in range(len(inner)):
            steps.append(int(np.prod(inner[axis + 1 :], dtype=int)))
        return numbers.as_strided((*array.shape, *inner), steps, numbers.storage_offset() + offset // number.itemsize)

    def bind(self, kernel: str, count: int, *arguments: Any) -> Callable[[], None]:
        """A call of a kernel once for each number below `count`, which follow the arguments as `first` and `last`."""
        data = encode_words((*arguments, 0, count), lambda array: self.bytes_of(array).data_ptr())
        words = torch.frombuffer(bytearray(data), dtype=torch.int64).to(self.device)
        return lambda: self._launch(kernel, words, count)


@functools.cache  # a module is never unloaded
def cuda_launcher(device: torch.device) -> Launch:
    """What runs the package's kernels on an NVIDIA GPU, whose driver compiles them.

    Raises `ConfigError` if there is no GPU, or one that is too old, and for a version of torch that cannot load PTX.
    """
    if not torch.cuda.is_available():
        raise ConfigError(f"device {str(device)!r}: torch finds no NVIDIA GPU here; use device='cpu'", "device")
    if torch.cuda.get_device_capability(device) < OLDEST:
        name, has = torch.cuda.get_device_name(device), torch.cuda.get_device_capability(device)
        raise ConfigError(
            f"device {str(device)!r}: expected a GPU of compute capability {OLDEST[0]}.{OLDEST[1]} or more, "
            f"got {name} with {has[0]}.{has[1]}; use device='cpu'",
            "device",
        )
    try:
        from torch.cuda._utils import _cuda_load_module  # torch has no public loader of PTX
    except ImportError:
        raise ConfigError(
            f"device {str(device)!r}: torch {torch.__version__} cannot load PTX; use torch 2.8 or later"
        ) from None
    torch.zeros(1, device=device)  # makes the context of this thread
    with torch.cuda.device(device):
        loaded: Any = _cuda_load_module(gpu_code(), [f"echelon_{name}" for name in KERNELS])

    def launch(kernel: str, words: Tensor, count: int) -> None:
        with torch.cuda.device(device):
            loaded[f"echelon_{kernel}"]((-(-count // BLOCK), 1, 1), (BLOCK, 1, 1), [words, 0, count])

    return launch
