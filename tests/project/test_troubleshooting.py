"""The messages that docs/guide/troubleshooting.md quotes are those of the code."""

import ast
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest

from cli.test_dispatch import run_without_train
from echelon_env import ConfigError, make_config
from echelon_env.engine import _library
from echelon_env.engine.kernels import Backend

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide" / "troubleshooting.md").read_text(encoding="utf-8")
ENOUGH = 20
"""Fixed characters of a text in the code that make it a message."""


def gymnasiums() -> str:
    with pytest.raises(gymnasium.error.NamespaceNotFound) as caught:
        gymnasium.make("unregistered/Duel-v0")
    return f"NamespaceNotFound: {caught.value}".replace("unregistered", "echelon")


def misspelt() -> str:
    with pytest.raises(ConfigError) as caught:
        make_config("duel", max_step=3)
    return str(caught.value)


def damaged() -> str:
    with tempfile.TemporaryDirectory() as package:
        folder = Path(package, _library.FOLDER)
        folder.mkdir()
        folder.joinpath(_library.MANIFEST).write_text('{"manifest_sha256": "0"}')
        with pytest.raises(_library.LibraryError) as caught:
            _library.load(Path(package))
    return str(Backend("jit", str(caught.value)))


RAISED = {
    "Echelon needs Python 3.11 or newer; set PYTHON=": lambda: (ROOT / "Makefile").read_text(encoding="utf-8"),
    "'train' needs tensorboard: pip install \"echelon-env[train]\"": lambda: run_without_train("train").stderr,
    "no machine code could be built (...)": lambda: (ROOT / "hatch_build.py").read_text(encoding="utf-8"),
    "Backend(name='jit', reason='.../manifest.json is damaged')": damaged,
    "NamespaceNotFound: Namespace echelon not found": gymnasiums,
    "unknown command ...; did you mean ...?": lambda: run_without_train("tran").stderr,
    "unknown config key ...; did you mean ...?": misspelt,
}
"""Messages that are made of parts, or not of the package, and where they come from."""

FOREIGN = {
    "requires a different Python: ... not in '>=3.11'",  # pip
    "error: XDG_RUNTIME_DIR is invalid or not set in the environment",  # SDL
    "Backend(name='library', ...)",  # a name, and no message
    "Backend(name='python', ...)",
}


def quoted() -> list[str]:
    """The texts in the first column that are no commands, options or names."""
    rows = re.findall(r"^\| (.*?) \| .* \|$", PAGE, re.MULTILINE)
    texts = [text for row in rows for text in re.findall(r"`([^`]+)`", row)]
    return [text for text in texts if re.search(r"\w+ \w+|\(", text) and not text.startswith(("echelon ", "Requires-"))]


def messages() -> Iterator[re.Pattern[str]]:
    """The texts of the code; what is inserted into them may be anything."""
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            fixed = [part.value if isinstance(part, ast.Constant) else None for part in parts]
            if sum(len(part) for part in fixed if isinstance(part, str)) >= ENOUGH:
                yield re.compile("".join(".+" if part is None else re.escape(str(part)) for part in fixed))


def test_quoted_messages_are_those_of_the_code():
    known, found = [*messages()], quoted()
    assert len(found) > 10 and RAISED.keys() | FOREIGN <= set(found), "no entry is out of date"
    wrong = [
        each
        for each in found
        if each not in RAISED.keys() | FOREIGN and not any(message.search(each) for message in known)
    ]
    assert wrong == []


@pytest.mark.parametrize("message", RAISED)
def test_quoted_messages_are_raised(message):
    assert re.search(".+".join(map(re.escape, message.split("..."))), RAISED[message]())
