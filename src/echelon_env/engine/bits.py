"""Bits of integers."""


def bit_length(value: int) -> int:
    """Number of bits of a non-negative integer without leading zeros; 0 for 0. `_jit` has its machine code."""
    return int(value).bit_length()
