"""Arrays that callers may keep. The memory of an array is used again when nothing refers to it any more.

New memory, which no cache holds, costs as much as a copy.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

SPARE = 4
"""Memories that are kept for the next arrays. Most loops use two or three by turns."""

Write = Callable[..., None]
Allocate = Callable[[], NDArray[Any]]


class LentArrays:
    """Makes arrays. When nothing refers to one or to a part of it any more, its memory becomes that of a later one.

    Parameters
    ----------
    allocate
        Makes an array, which is the memory of those that are lent.
    """

    def __init__(self, allocate: Allocate) -> None:
        self._allocate = allocate
        self._free: list[Memory] = []
        self._in_use: set[Memory] = set()

    def take(self) -> tuple[Memory, NDArray[Any]]:
        """An array with any contents to which nothing else refers, and its memory."""
        memory = self._free.pop() if self._free else Memory(self._allocate(), self)
        self._in_use.add(memory)
        return memory, memory.lend()

    def take_back(self, memory: Memory) -> None:
        """Have a memory again to which nothing refers."""
        self._in_use.discard(memory)
        if len(self._free) < SPARE:
            self._free.append(memory)


class Memory:
    """Memory of arrays, what writes there, and what watches the present one."""

    _bind: Callable[..., Write] | None = None
    _write: Write
    _watch: weakref.ref[NDArray[Any]]

    def __init__(self, array: NDArray[Any], owner: LentArrays) -> None:
        self._array = array
        self._buffer, self._dtype, self._shape = array.view(np.uint8).data, array.dtype, array.shape
        own, it = weakref.ref(owner), weakref.ref(self)

        def release(_: object) -> None:
            lent, memory = own(), it()
            if lent is not None and memory is not None:
                lent.take_back(memory)

        self._release = release

    def lend(self) -> NDArray[Any]:
        """An array in this memory. The owner has the memory back when nothing refers to the array any more."""
        array = np.frombuffer(self._buffer, self._dtype)  # not a view of `_array`, to which its parts would refer
        self._watch = weakref.ref(array, self._release)
        return array.reshape(self._shape)

    def writer(self, bind: Callable[[NDArray[Any]], Write]) -> Write:
        """What `bind` makes of the memory: once for every memory, as that costs more than a call does."""
        if self._bind is not bind:
            self._write, self._bind = bind(self._array), bind
        return self._write
