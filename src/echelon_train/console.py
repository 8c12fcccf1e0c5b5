"""Rich's console, in which no text of a stranger, such as the name of a file, controls the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.segment import Segment

from echelon_env.cli.output import printable_lines, terminal


class PrintableConsole(Console):
    """A console on the terminal behind the command's output, with the options of Rich's."""

    def __init__(self, **options: Any) -> None:
        stream = terminal(sys.stderr if options.get("stderr") else sys.stdout)
        super().__init__(**{"file": stream, **options})

    def render(self, *arguments: Any, **options: Any) -> Iterator[Segment]:
        """The segments of what is shown: texts as `printable_lines`, Rich's own control codes as they are."""
        for segment in super().render(*arguments, **options):
            yield segment if segment.control else segment._replace(text=printable_lines(segment.text))
