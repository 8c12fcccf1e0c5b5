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
        self.write(array, array)
        return memory[: array.nbytes]

    def write(self, array: NDArray[Any], content: NDArray[Any]) -> None:
        """Give a placed array another content."""
        self.bytes_of(array).copy_(torch.from_numpy(content.reshape(-1).view(np.uint8)))

    def read(self, array: NDArray[Any]) -> NDArray[Any]:
        """What the device has of a placed array, or of a part of one: a new array."""
        return self.bytes_of(array).cpu().numpy().copy().view(array.dtype).reshape(array.shape)

    def tensor(self, array: NDArray[Any]) -> Tensor:
        """A placed array of numbers as a tensor: a view of the device's memory."""
        return self.bytes_of(array).view(_torch_dtype(array.dtype)).view(array.shape)

    def bind(self, kernel: str, count: int, *arguments: Any) -> Callable[[], None]:
        """A call of a kernel once for each number below `count`, which follow the arguments as `first` and `last`.

        Autograd takes every array among the arguments as changed.
        """
        used: list[Tensor] = []

        def place(array: NDArray[Any]) -> int:
            used.append(self.bytes_of(array))
            return used[-1].data_ptr()

        data = encode_words((*arguments, 0, count), place)
        words = torch.frombuffer(bytearray(data), dtype=torch.int64).to(self.device)

        def call() -> None:
            self._launch(kernel, words, count)
            torch.autograd.graph.increment_version(used)

        return call


def record_fields(memory: Tensor, array: NDArray[Any]) -> dict[str, Tensor]:
    """The fields of records (..., ) by name, without gaps, as views of the bytes of the whole array."""
    assert array.dtype.fields is not None
    fields = {}
    for name, (dtype, offset, *_) in array.dtype.fields.items():
        if name.startswith("gap_"):
            continue
        number, inner = dtype.subdtype or (dtype, ())
        steps = [each // number.itemsize for each in array.strides]
        steps += [int(np.prod(inner[axis + 1 :], dtype=int)) for axis in range(len(inner))]
        numbers = memory.view(_torch_dtype(number))
        fields[name] = numbers.as_strided((*array.shape, *inner), steps, offset // number.itemsize)
    return fields


def _torch_dtype(dtype: np.dtype[Any]) -> torch.dtype:
    return torch.from_numpy(np.zeros(0, dtype)).dtype


@functools.cache  # a module is never unloaded
def cuda_launcher(device: torch.device) -> Launch:
    """What runs the package's kernels on an NVIDIA GPU, whose driver compiles them.

    Raises `ConfigError` if there is no such GPU, or one that is too old, and for a driver or a torch that cannot load
    the kernels. Raises `BackendError` if the package brings none.
    """
    if not torch.cuda.is_available() or torch.version.cuda is None:
        raise ConfigError(f"device {str(device)!r}: torch finds no NVIDIA GPU here; use device='cpu'", "device")
    if (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"device {str(device)!r}: torch finds {torch.cuda.device_count()} GPUs here", "device")
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
    code = gpu_code()
    try:
        torch.zeros(1, device=device)  # makes the context of this thread
        with torch.cuda.device(device):
            loaded: Any = _cuda_load_module(code, [f"echelon_{name}" for name in KERNELS])
    except RuntimeError as error:
        raise ConfigError(
            f"device {str(device)!r}: the driver cannot load the kernels ({error}); use one for CUDA 11.8 or later",
            "device",
        ) from None

    def launch(kernel: str, words: Tensor, count: int) -> None:
        with torch.cuda.device(device):
            loaded[f"echelon_{kernel}"]((-(-count // BLOCK), 1, 1), (BLOCK, 1, 1), [words, 0, count])

    return launch
