"""Types of command-line arguments."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from echelon_env.config.battle import BattleConfig
from echelon_env.config.scenario import make_config
from echelon_env.config.schema import ConfigError
from echelon_env.config.toml_file import parse_value
from echelon_env.storage.text import one_line

ERROR = 2
"""Exit code for an invalid request."""


def positive(text: str) -> int:
    """An integer of at least 1."""
    return _integer(text, 1)


def non_negative(text: str) -> int:
    """An integer of at least 0."""
    return _integer(text, 0)


def positive_number(text: str) -> float:
    """A finite number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return value


def _integer(text: str, minimum: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = minimum - 1
    if value < minimum:
        raise argparse.ArgumentTypeError(f"expected an integer of at least {minimum}, got {text!r}")
    return value


def parse_settings(texts: Sequence[str], option: str = "--set") -> dict[str, str]:
    """Parse texts of the form KEY=VALUE: key -> value. Raises `ConfigError`, with the option, for others."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise ConfigError(f"{option}: expected KEY=VALUE, got {text!r}")
        if key in found:
            raise ConfigError(f"{option}: {key} is given twice", key)
        found[key] = value
    return found


def merge_settings(options: Mapping[str, str], texts: Sequence[str]) -> dict[str, str]:
    """Settings by key, of options of their own and of ``--set KEY=VALUE``. Raises `ConfigError` for one in both."""
    settings = parse_settings(texts)
    if twice := sorted(options.keys() & settings.keys()):
        raise ConfigError(f"--set: {', '.join(twice)}: an option of its own sets it, too", twice[0])
    return {**options, **settings}


def change_battle(config: BattleConfig, settings: Mapping[str, str]) -> BattleConfig:
    """A battle with changed settings: TOML values by dotted key, such as ``abilities.intel``. Raises `ConfigError`."""
    changes: dict[str, Any] = {}
    for key, text in settings.items():
        *tables, name = key.removeprefix("battle.").split(".")  # as in a run config
        table = changes
        for part in tables:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise ConfigError(f"--set: {key}: {part!r} is a value, not a table", key)
        if name in table:
            raise ConfigError(f"--set: {key}: another --set changes it, too", key)
        table[name] = parse_value(text)
    try:
        return make_config(config, **changes)
    except ConfigError as error:
        raise ConfigError(f"--set: {error}", *error.keys) from None


class CommandParser(argparse.ArgumentParser):
    """A parser that reports a bad command line in one line, and whose help may leave out rare options."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._rare: list[argparse.Action] = []
        self._short_epilog = ""

    def error(self, message: str) -> NoReturn:
        """Exit with the message."""
        self.exit(ERROR, f"{self.prog}: {one_line(message)} (see '{self.prog} --help')\n")

    def add_full_help(self, short_epilog: str) -> list[argparse.Action]:
        """Add ``--help-all``. Returns a list for the options that ``--help`` leaves out, which has the other epilog."""
        self._short_epilog = short_epilog
        self.add_argument("--help-all", action=_FullHelp, help="show the help of all options and exit")
        return self._rare

    def print_help(self, file: Any = None) -> None:
        """Print the help without rare options; `format_help` has all."""
        kept = self.epilog, [action.help for action in self._rare]
        if self._rare:
            self.epilog = self._short_epilog
        for action in self._rare:
            action.help = argparse.SUPPRESS
        super().print_help(file)
        self.epilog = kept[0]
        for action, text in zip(self._rare, kept[1], strict=True):
            action.help = text


class _FullHelp(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, 0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(parser.format_help(), end="")
        parser.exit()
