"""Types of command-line arguments."""

from __future__ import annotations

import argparse
import math


def positive(text: str) -> int:
    """An integer of at least 1."""
    return _integer(text, 1)


def non_negative(text: str) -> int:
    """An integer of at least 0."""
    return _integer(text, 0)


def positive_number(text: str) -> float:
    """A finite number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return value


def _integer(text: str, minimum: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = minimum - 1
    if value < minimum:
        raise argparse.ArgumentTypeError(f"expected an integer of at least {minimum}, got {text!r}")
    return value
