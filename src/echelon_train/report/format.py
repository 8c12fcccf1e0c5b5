"""Numbers as texts."""

from __future__ import annotations

import sys
from typing import Any


def share(value: float) -> str:
    """A share in per cent, such as ``"52.1 %"``."""
    return f"{100 * value:.1f} %"


def interval(estimate: float | None, low: float | None, high: float | None) -> str:
    """A share with its interval, in per cent: ``"52.0 [45.1, 58.8]"``; what is None is left out."""
    if estimate is None:
        return "-"
    bounds = "" if low is None or high is None else f" [{100 * low:.1f}, {100 * high:.1f}]"
    return f"{100 * estimate:.1f}{bounds}"


def mean(value: float | None) -> str:
    """A mean in a column: ``"124"``, ``"12.4"`` or ``"0.12"``; ``"-"`` for None."""
    if value is None:
        return "-"
    return f"{value:,.{0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2}f}"


def number(value: Any, digits: int = 3) -> str:
    """A number in a few significant digits, such as ``"1,234"`` or ``"0.0123"``; ``"-"`` for none."""
    if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
        return "-"
    if isinstance(value, int) or abs(value) >= 10**digits:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"
