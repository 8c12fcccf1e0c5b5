"""Texts of strangers, such as names of files and players, as they are shown."""

from __future__ import annotations

MAX_MESSAGE = 4_000
"""Characters of a message."""


def printable(text: str) -> str:
    r"""The text with a question mark for each control character and each other one that is not printed.

    >>> printable("red\x1b[2J")
    'red?[2J'
    """
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in text)


def one_line(message: str) -> str:
    """A message in one printable line, without the middle if it is long, because messages quote texts of strangers."""
    if len(message) > MAX_MESSAGE:
        message = f"{message[: MAX_MESSAGE // 2]} ... {message[-MAX_MESSAGE // 4 :]}"
    return printable(message.replace("\n", " "))
