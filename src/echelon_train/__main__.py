"""``python -m echelon_train``: the trainer's commands, also for several processes under torchrun.

``torchrun --nproc-per-node 4 -m echelon_train skirmish`` is ``echelon train skirmish --processes 4``: four processes,
each with the configured number of battles. The command ``train`` may be omitted.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

from echelon_env.cli import main as command_line
from echelon_train.ppo import distributed

COMMANDS = ("train", "imitate", "demo")


def main(arguments: Sequence[str]) -> int:
    """Run one of the trainer's commands and return its exit code."""
    named = bool(arguments) and arguments[0] in COMMANDS
    with contextlib.ExitStack() as stack:
        stack.enter_context(distributed.process_group())
        if distributed.rank() > 0:  # only the first process prints
            stack.enter_context(contextlib.redirect_stdout(stack.enter_context(open(os.devnull, "w"))))
        return command_line(list(arguments) if named else ["train", *arguments])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
