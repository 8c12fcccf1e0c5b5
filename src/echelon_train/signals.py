"""Signals that ask a process to save and end: Ctrl-C, SIGTERM, and SIGHUP of a closed terminal."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
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

    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, *TERMINAL_SIGNALS)}
    if _HANGUP and before[_HANGUP] is signal.SIG_IGN:
        del before[_HANGUP]
    try:
        for each in before:
            signal.signal(each, handle)
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextlib.contextmanager
def terminal_signals_held() -> Iterator[None]:
    """Hold `TERMINAL_SIGNALS` back from this thread, and for ever from processes that it starts in the block.

    Such a process is ended by its parent. A signal that comes in the block has its effect at the end of the block.
    Windows cannot hold signals back.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # its start with the first process would end the hold of SIGINT
    before = signal.pthread_sigmask(signal.SIG_BLOCK, TERMINAL_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
