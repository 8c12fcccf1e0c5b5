"""Generates the pages of the API reference, of all settings, and of the commands, from the code."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import importlib
import inspect
import io
import os
import textwrap
import tokenize
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal
from unittest import mock

from docs.generate import (
    MODULES_OF_OTHERS,
    PUBLIC_MODULES,
    api,
    assigned_docstring,
    classes_of,
    markdown,
    signatures_of,
)
from docs.site.staging import relinked, write
from echelon_env.cli.arguments import CommandParser
from echelon_env.config import BattleConfig, Curriculum, plugins
from echelon_env.config.schema import MAX_VALUE
from echelon_train.config import TrainConfig

MAX_SHOWN = 70  # characters of a value
OWN_PACKAGES = "echelon_env", "echelon_train"
"""Packages whose classes show what they inherit, unless others are among their bases."""


def canonical() -> dict[tuple[str, str], str]:
    """(module, public name) to the one name with dots under which the reference describes it."""
    first: dict[tuple[str, int], str] = {}
    found = {}
    for module in PUBLIC_MODULES:
        for name in importlib.import_module(module).__all__:
            value = getattr(importlib.import_module(module), name)
            if inspect.ismodule(value):
                found[module, name] = value.__name__
            else:
                found[module, name] = first.setdefault((name, id(value)), f"{module}.{name}")
    for module in MODULES_OF_OTHERS:
        found |= {(module, name): f"{module}.{name}" for name in classes_of(module)}
    return found


def module_page(module: str, names: dict[tuple[str, str], str]) -> str:
    """The page of a module in reStructuredText, which autodoc fills."""
    parts = [_title(module), f".. automodule:: {module}\n   :no-members:"]
    elsewhere = []
    for public in importlib.import_module(module).__all__:
        if names[module, public] == f"{module}.{public}" and names[module, public] not in PUBLIC_MODULES:
            parts.append(_entry(module, public))
        else:
            elsewhere.append(f":py:obj:`{public} <{names[module, public]}>`")
    if elsewhere:
        parts.append(f"Described elsewhere: {', '.join(elsewhere)}.")
    return "\n\n".join(parts) + "\n"


def _title(module: str) -> str:
    return f"``{module}``\n{'=' * (len(module) + 4)}"


def _entry(module: str, public: str) -> str:
    value = getattr(importlib.import_module(module), public)
    dotted = f"{module}.{public}"
    if inspect.isclass(value):
        own = all(each.__module__.partition(".")[0] in OWN_PACKAGES for each in value.__mro__[:-1])
        inherited = "\n   :inherited-members:" if own and len(value.__mro__) > 2 else ""
        return f".. auto{'exception' if issubclass(value, Exception) else 'class'}:: {dotted}\n   :members:{inherited}"
    if inspect.isfunction(inspect.unwrap(value)):
        return f".. autofunction:: {dotted}"
    shown = " ".join(str(value).split()) if isinstance(value, (type(int | str), types.GenericAlias)) else repr(value)
    lines = [f".. py:data:: {public}"]
    if not isinstance(value, types.UnionType):
        lines.append(f"   :type: {type(value).__name__}")
    if len(shown) <= MAX_SHOWN:
        lines.append(f"   :value: {shown}")
    return "\n".join([*lines, "", textwrap.indent(assigned_docstring(importlib.import_module(module), public), "   ")])


def page_of_others(module: str) -> str:
    """The page of a module whose libraries need not be installed."""
    parts = [_title(module), f".. py:module:: {module}"]
    signatures = signatures_of(module)  # a mocked base class hides them
    parts += [f".. autoclass:: {module}.{name}({signatures[name]})\n   :members:" for name in classes_of(module)]
    return "\n\n".join(parts) + "\n"


def settings(config: type[Any], prefix: str = "", level: int = 2) -> Iterator[str]:
    """Sections with the fields of a configuration and of its parts, each with default, unit, range and meaning."""
    rows, parts = [], []
    hints, comments = typing.get_type_hints(config), _comments(config)
    for field in dataclasses.fields(config):
        part = _part_of(hints[field.name], field)
        if part is not None:
            parts.append((part, f"{prefix}{field.name}."))
            continue
        meaning = field.metadata.get("help") or comments.get(field.name, "")
        cells = _default(field), field.metadata.get("unit", ""), _range(hints[field.name], field), meaning
        rows.append((f"`{prefix}{field.name}`", *(cell.replace("|", "\\|") for cell in cells)))
    summary = " ".join((inspect.getdoc(config) or "").split("\n\n")[0].split())
    name = config.__name__
    yield f"{'#' * level} {name}\n\n{{py:obj}}`{name} <{config.__module__}.{name}>`: {summary}\n"
    if rows:
        yield markdown(("key", "default", "unit", "range", "meaning"), rows) + "\n"
    for part, path in parts:
        yield from settings(part, path, min(level + 1, 3))


_WHOLE = ("battle", "extra_scenarios", "scenarios", "opponents")
"""Fields that hold configurations which have sections of their own."""


def _part_of(hint: Any, field: dataclasses.Field[Any]) -> type[Any] | None:
    """The configuration that a field holds, itself or in a tuple of parts with names."""
    if field.name in _WHOLE:
        return None
    if typing.get_origin(hint) is tuple and dataclasses.is_dataclass(typing.get_args(hint)[0]):
        return typing.cast("type[Any]", typing.get_args(hint)[0])
    return typing.cast("type[Any]", hint) if dataclasses.is_dataclass(hint) and not hasattr(hint, "parse") else None


def _comments(config: type[Any]) -> dict[str, str]:
    """The comment at the end of the line of each field."""
    source = textwrap.dedent(inspect.getsource(config))
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    by_line = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
    (statement,) = ast.parse(source).body
    assert isinstance(statement, ast.ClassDef)
    fields = [node for node in statement.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)]
    found = {node.target.id: by_line.get(node.lineno) or by_line.get(node.end_lineno) for node in fields}
    return {name: comment for name, comment in found.items() if comment and not comment.startswith("type:")}


def _default(field: dataclasses.Field[Any]) -> str:
    value = field.default
    if field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    if value is dataclasses.MISSING:
        return "required"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, (tuple, list)):
        return ", ".join(map(str, value)) or "none"
    if dataclasses.is_dataclass(value):
        value = value.plain() if hasattr(value, "plain") else str(value)
    return {"None": "-", "": "empty", "True": "true", "False": "false"}.get(str(value), str(value))


def _range(hint: Any, field: dataclasses.Field[Any]) -> str:
    if typing.get_origin(hint) is Literal:
        return ", ".join(typing.get_args(hint))
    if "low" in field.metadata:
        low, high = field.metadata["low"], field.metadata["high"]
        return f"at least {low:g}" if high >= MAX_VALUE and low >= 0 else f"{low:g} to {high:g}"
    return "true, false" if hint is bool else ""


SETTINGS = """# Settings

Every field of a configuration, with its default, unit and inclusive range. An invalid value raises
{py:obj}`ConfigError <echelon_env.ConfigError>`, which names the key, the expected and the given value.

## A battle

Every environment, the engine and {py:obj}`make_config <echelon_env.make_config>` take these fields as keyword
arguments, nested parts as mappings: `make_config("duel", max_steps=240, terrain={"size": 64})`. A [scenario
file](../guide/scenarios.md#a-scenario-file) has the nested parts as tables, and `echelon train` takes
`--set battle.terrain.size=64`.
An entry of the catalogue is changed by its name: `catalog={"weapons": {"laser": {"damage": 20}}}`. [The
rules](rules.md) define what the values do.

"""
TRAINING = """## A training run

The [run files](../guide/train.md#a-run-config) and options of `echelon train`; nested parts are tables in a file and
options with a dot, `--ppo.n-steps 64`. The shipped run files change some of the defaults.

"""


def settings_page() -> str:
    """The page of all settings."""
    battle, training = "\n".join(settings(BattleConfig, level=3)), "\n".join(settings(TrainConfig, level=3))
    curriculum = "\n".join(settings(Curriculum, level=3))
    return f"{SETTINGS}{battle}\n{TRAINING}{training}\n## A curriculum\n\n{curriculum}"


COMMANDS = """# Commands

What `echelon COMMAND --help` prints. `echelon --version` prints the version. Exit codes: 0 for success, 2 for an
invalid request, which is reported in one line, 130 after Ctrl-C.

"""


def commands_page() -> str:
    """The page of all commands."""
    sections = [COMMANDS]
    with mock.patch.dict(os.environ, COLUMNS="100", NO_COLOR="1"):
        for name, point in plugins.declared(plugins.COMMANDS).items():
            module = point.load()
            parser = CommandParser(prog=f"echelon {name}", description=module.__doc__.splitlines()[0])
            module.add_arguments(parser)
            sections += [f"## echelon {name}\n", _help(parser)]
            for action in parser._actions:
                if isinstance(action, argparse._SubParsersAction):
                    for child, subparser in action.choices.items():
                        sections += [f"### echelon {name} {child}\n", _help(subparser)]
    return "\n".join(sections)


def _help(parser: argparse.ArgumentParser) -> str:
    return f"```text\n{parser.format_help().rstrip()}\n```\n"


def stage(source: Path) -> None:
    """Write the pages into the site's source tree."""
    names = canonical()
    for module in PUBLIC_MODULES:
        write(source / "reference" / f"{module}.rst", module_page(module, names))
    for module in MODULES_OF_OTHERS:
        write(source / "reference" / f"{module}.rst", page_of_others(module))
    index = api(lambda module, public: f"{{py:obj}}`{public} <{names[module, public]}>`")
    pages = "\n".join((*PUBLIC_MODULES, *MODULES_OF_OTHERS))
    tree = f"```{{toctree}}\n:hidden:\n\n{pages}\n```\n"
    write(source / "reference" / "api.md", relinked(index, "docs/reference/api.md") + "\n" + tree)
    write(source / "reference" / "settings.md", settings_page())
    write(source / "reference" / "commands.md", commands_page())
