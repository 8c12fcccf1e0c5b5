"""The commands of `echelon league`, in this process."""

import json

import pytest

from echelon_env.cli import main


class Commands:
    """Runs ``echelon league``. Every line of text has at most 80 columns, unless it has a path."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def lines(self, *arguments: object, code: int = 0) -> list[str]:
        assert main(["league", *map(str, arguments)]) == code
        captured = self._capsys.readouterr()
        assert captured.err == ""
        lines = captured.out.splitlines()
        assert all(len(line) <= 80 or "/" in line for line in lines)
        return lines

    def text(self, *arguments: object, code: int = 0) -> str:
        """The output of a command, in one line."""
        return " ".join(" ".join(self.lines(*arguments, code=code)).split())

    def json(self, *arguments: object, code: int = 0) -> dict:
        assert main(["league", *map(str, arguments), "--json"]) == code
        captured = self._capsys.readouterr()
        assert captured.err == ""
        return json.loads(captured.out)

    def refusal(self, *arguments: object) -> str:
        """The one line that a refused command prints."""
        try:
            code = main(["league", *map(str, arguments)])
        except SystemExit as error:
            code = error.code
        captured = self._capsys.readouterr()
        assert (code, captured.out, captured.err.count("\n")) == (2, "", 1)
        return captured.err
