"""The memory of a battle in WebAssembly: copies of the engine's arrays, and the argument words of its kernels.

`native/README.md` describes the words of a call.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

ALIGNMENT = 64


def encode_words(value: Any, place: Callable[[NDArray[Any]], int]) -> bytes:
    """The argument words of a number, an array or a tuple of them, given the addresses of arrays."""
    if isinstance(value, tuple):
        return b"".join(encode_words(each, place) for each in value)
    if isinstance(value, np.ndarray):
        numbers = (0, 0, value.size, value.itemsize, place(value), *value.shape, *value.strides)
        return struct.pack(f"<{len(numbers)}q", *numbers)
    return struct.pack("<d" if isinstance(value, float) else "<q", value)


class MemoryImage:
    """Memory from the address `base` on. Arrays are placed as they are at that moment."""

    def __init__(self, base: int) -> None:
        self.base = base
        self._memory = bytearray()
        self._placed: list[tuple[NDArray[Any], int]] = []  # arrays with their addresses

    def __len__(self) -> int:
        return len(self._memory)

    def place(self, array: NDArray[Any], content: NDArray[Any] | None = None) -> int:
        """The address of an array, or of a part of one that was placed before.

        The first call for an array copies it there, or `content` in its stead.
        """
        start = array.ctypes.data
        for other, address in self._placed:
            offset = start - other.ctypes.data
            if 0 <= offset < max(1, other.nbytes):
                return address + offset
        address = self._append((array if content is None else content).tobytes())
        self._placed.append((array, address))
        return address

    def words(self, *arguments: Any) -> int:
        """The address of the argument words of a call. Arrays among the arguments and in tuples are placed."""
        return self._append(encode_words(arguments, self.place))

    def to_bytes(self) -> bytes:
        """The memory."""
        return bytes(self._memory)

    def _append(self, data: bytes) -> int:
        self._memory += bytes(-len(self._memory) % ALIGNMENT)
        address = self.base + len(self._memory)
        self._memory += data or bytes(1)
        return address
