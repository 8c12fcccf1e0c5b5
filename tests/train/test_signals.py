import io
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from rich.console import Console

from echelon_train.signals import TERMINAL_SIGNALS, stop_signals, terminal_signals_held

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="the system has no SIGHUP")
CASES = {  # signals, every one calls, calls, the last signal had its usual effect, the console is quiet
    "SIGTERM": (("SIGTERM",), False, 1, False, False),
    "a second SIGTERM": (("SIGTERM", "SIGTERM"), False, 1, True, False),
    "Ctrl-C after SIGTERM": (("SIGTERM", "SIGINT"), False, 1, True, False),
    "a terminal that is closed": (("SIGHUP", "SIGHUP", "SIGHUP"), False, 1, False, True),
    "SIGTERM after it": (("SIGHUP", "SIGTERM"), False, 1, True, True),
    "a terminal that is closed after Ctrl-C": (("SIGINT", "SIGHUP"), False, 1, False, True),
    "every signal": (("SIGINT", "SIGTERM", "SIGINT"), True, 3, False, False),
    "every signal, but SIGHUP once": (("SIGHUP", "SIGHUP", "SIGTERM"), True, 2, False, True),
}


@pytest.fixture
def usual():
    """Signals that had the effect that they have outside of the block."""
    came = []
    before = {number: signal.signal(number, lambda each, frame: came.append(each)) for number in NUMBERS}
    yield came
    for number, handler in before.items():
        signal.signal(number, handler)


NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.mark.parametrize("case", CASES)
def test_what_signals_do(case, usual):
    names, every, calls, last_usual, quiet = CASES[case]
    called, console = [], Console(file=io.StringIO())
    with stop_signals(lambda: called.append(True), console, every=every):
        for name in names:
            signal.raise_signal(signal.Signals[name])
    assert (len(called), len(usual), console.quiet) == (calls, int(last_usual), quiet)
    for number in NUMBERS:
        signal.raise_signal(number)
    assert usual[int(last_usual) :] == list(NUMBERS), "after the block"


def test_a_hangup_that_nohup_ignores_stays_ignored(usual):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with stop_signals(lambda: pytest.fail("called"), Console(file=io.StringIO())):
        signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_signals_that_are_held_back_come_later(usual):
    with terminal_signals_held():
        for number in NUMBERS:
            signal.raise_signal(number)
        assert usual == [signal.SIGTERM]
    assert sorted(usual) == sorted(NUMBERS)


def test_processes_that_any_thread_starts_meanwhile_never_have_them():
    code = "import signal; print(*sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ()))))"

    def start():
        with terminal_signals_held():
            return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    with ThreadPoolExecutor(1) as threads:
        held = {*map(int, threads.submit(start).result().split())}
    assert held >= {*TERMINAL_SIGNALS}
    assert not {*TERMINAL_SIGNALS} & signal.pthread_sigmask(signal.SIG_BLOCK, ())
