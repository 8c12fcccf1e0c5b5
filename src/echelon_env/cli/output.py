"""What commands print: no text of a stranger, such as the name of a file, controls the terminal."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from echelon_env.storage.text import printable


def command(*words: object) -> str:
    """A command line of `echelon`, quoted for a shell, to which users copy it.

    >>> command("evaluate", "my runs/a")
    "echelon evaluate 'my runs/a'"
    """
    return shlex.join(["echelon", *map(str, words)])


def printable_lines(text: str) -> str:
    """A text whose lines are printable."""
    return "\n".join(map(printable, text.split("\n")))


class _PrintableLines:
    """Writes the lines of texts to a stream, as `printable_lines`.

    It is no terminal, so that libraries write no colours, which it would replace.
    """

    def __init__(self, stream: TextIO) -> None:
        self.terminal = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.terminal, name)

    def isatty(self) -> bool:
        return False

    def write(self, text: str) -> int:
        self.terminal.write(printable_lines(text))
        return len(text)


@contextlib.contextmanager
def printable_output() -> Iterator[None]:
    """Replace what is not printable in all that the block prints."""
    out: Any = _PrintableLines(sys.stdout)
    err: Any = _PrintableLines(sys.stderr)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield


def terminal(stream: TextIO) -> TextIO:
    """The stream behind one of `printable_output`, for escape sequences of our own; any other one as it is."""
    behind: TextIO = getattr(stream, "terminal", stream)
    return behind


def show_status(line: str) -> None:
    """Show a line on stderr, if that is a terminal, in the place of the last one."""
    stream = terminal(sys.stderr)
    if stream.isatty():
        print(f"\r{printable(line)[:79]:<79}\r", end="", file=stream, flush=True)
