"""The memory of a battle in WebAssembly: copies of the engine's arrays, and the argument words of its kernels.

`native/README.md` describes the words of a call.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

ALIGNMENT = 64


class MemoryImage:
    """Memory from the address `base` on. Arrays are placed as they are at that moment."""

    def __init__(self, base: int) -> None:
        self.base = base
        self._memory = bytearray()
        self._addresses: dict[int, int] = {}
        self._placed: list[NDArray[Any]] = []  # kept, or another array might come to lie at the same address here

    def place(self, array: NDArray[Any], content: NDArray[Any] | None = None) -> int:
        """The address of an array. Its first call copies the array there, or `content` in its stead."""
        key = array.ctypes.data
        if key not in self._addresses:
            self._addresses[key] = self._append((array if content is None else content).tobytes())
            self._placed.append(array)
        return self._addresses[key]

    def words(self, *arguments: Any) -> int:
        """The address of the argument words of a call. Arrays among the arguments and in tuples are placed."""
        return self._append(b"".join(map(self._encode, arguments)))

    def to_bytes(self) -> bytes:
        """The memory."""
        return bytes(self._memory)

    def _append(self, data: bytes) -> int:
        self._memory += bytes(-len(self._memory) % ALIGNMENT)
        address = self.base + len(self._memory)
        self._memory += data or bytes(1)
        return address

    def _encode(self, value: Any) -> bytes:
        if isinstance(value, tuple):
            return b"".join(map(self._encode, value))
        if isinstance(value, np.ndarray):
            numbers = (0, 0, value.size, value.itemsize, self.place(value), *value.shape, *value.strides)
            return struct.pack(f"<{len(numbers)}q", *numbers)
        return struct.pack("<d" if isinstance(value, float) else "<q", value)
