"""The processes of a league run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from echelon_env.storage.reading import open_regular_file, without_waiting

CHILD = "echelon_train.supervisor.child"
MAX_LOG = 1 << 24
"""Size of a log, in bytes, above which it starts again; the one before is kept as ``.old``."""

_TAIL = 4096  # bytes of a log that are searched for the reason of a failure


class Child:
    """A command of `echelon` in a process that ends when this one does. Its output is appended to a log.

    It is in a process group of its own, so that Ctrl-C reaches this process only.
    """

    def __init__(self, command: Sequence[str], log: Path) -> None:
        if log.exists() and log.stat().st_size > MAX_LOG:
            log.replace(log.with_suffix(".old"))
        self._log = log
        with open(log, "ab", opener=without_waiting) as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", CHILD, *command],
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=subprocess.STDOUT,
                process_group=0,
                env=os.environ | {"COLUMNS": "120"},
            )

    def poll(self) -> int | None:
        """Its exit code; None while it runs. Negative: the signal that killed it."""
        code = self.process.poll()
        if code is not None and self.process.stdin is not None:
            self.process.stdin.close()
        return code

    def reason(self) -> str:
        """The last line that it has printed."""
        return last_line(self._log)

    def stop(self) -> None:
        """Ask it to save and end."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()
        self.poll()


def tail(path: Path, size: int) -> bytes:
    """The last bytes of a file. Raises OSError, and ValueError if it is not regular."""
    with open_regular_file(path) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - size))
        return file.read()


def last_line(log: Path) -> str:
    """The last line of a log that is not empty, without the name of the command; empty if there is none."""
    try:
        lines = tail(log, _TAIL).decode(errors="replace").split("\n")
    except (OSError, ValueError):
        return ""
    line = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return line.removeprefix("echelon: ")
