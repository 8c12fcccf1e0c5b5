"""Signals that ask a process to save and end: Ctrl-C, SIGTERM, and SIGHUP of a closed terminal."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

from rich.console import Console

_HANGUP = getattr(signal, "SIGHUP", None)  # Windows has none
TERMINAL_SIGNALS = tuple(each for each in (signal.SIGINT, _HANGUP) if each is not None)
"""Sent by a terminal to all processes of a command."""


@contextlib.contextmanager
def stop_signals(call: Callable[[], None], console: Console, *, every: bool = False) -> Iterator[None]:
    """Call a function at the first signal in the block, or at `every` one. It does nothing but in the main thread.

    After the first one SIGINT and SIGTERM have their usual effect again, unless `every` one calls. SIGHUP has none
    then, for a closed terminal sends it more than once, and none where it was ignored before, as nohup does. SIGHUP
    makes the `console` quiet: writing to a terminal that is gone is an error.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal came
        if number == _HANGUP:
            console.quiet = True
            if came:
                return
        came = True
        if not every:
            for each in before.keys() - {_HANGUP}:
                signal.signal(each, before[each])
        call()

    numbers = {signal.SIGTERM, *TERMINAL_SIGNALS}
    if _HANGUP and signal.getsignal(_HANGUP) is signal.SIG_IGN:
        numbers.discard(_HANGUP)
    before = {each: signal.signal(each, handle) for each in numbers}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextlib.contextmanager
def terminal_signals_ignored() -> Iterator[None]:
    """Processes started in the block ignore `TERMINAL_SIGNALS` from the start; the parent process ends them."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread can set signal handlers
        yield
        return
    before = {each: signal.signal(each, signal.SIG_IGN) for each in TERMINAL_SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
