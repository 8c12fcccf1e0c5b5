"""``python -m echelon_train.supervisor.child COMMAND...``: a command of `echelon` that ends with its parent.

It ends when its standard input does, because then its parent has ended: a training is saved first.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Sequence

from echelon_env.cli import main as command_line

_PATIENCE = 120.0  # s for a training to be saved


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    return command_line(arguments)


def _end_with_the_parent() -> None:
    os.read(sys.stdin.fileno(), 1)  # nothing is ever written
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_PATIENCE)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
