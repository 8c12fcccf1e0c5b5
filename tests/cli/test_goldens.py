"""What commands print is what the golden texts have; `python tests/cli/test_goldens.py` prints them again.

Hashes and the version are left out of the texts.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from echelon_env.cli import main
from support.tiny import TINY

GOLDENS = Path(__file__).parent / "goldens"

COMMANDS = {
    "one": "evaluate random --opponent trivial --scenario tiny.toml --battles 4 --seed 3",
    "opponents": "evaluate idle --opponent trivial random idle --scenario tiny.toml --battles 2",
    "several": "evaluate idle random trivial --scenario tiny.toml --battles 2 --set max_steps=9",
    "changed": "evaluate idle --scenario duel --battles 2 --set abilities.intel=false --set max_steps=3",
    "suite": "evaluate idle --suite echelon-eval-v3 --scenario duel --battles 2",
    "card": "card novice --scenario duel-open --battles 2 --set max_steps=100 --without contacts laser memory",
    "statistics": "maps --scenario duel-open --maps 3 --statistics",
    "biomes": "maps --scenario duel-open --maps 2 --statistics --biomes barrens jungle",
}


def output(name: str) -> str:
    """What a command prints in a folder with a scenario."""
    Path("tiny.toml").write_text(TINY)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(COMMANDS[name].split()) == 0
    text = re.sub(r"\b[0-9a-f]{12}\b", "HASH", out.getvalue())
    return text.replace(f"echelon-env {version('echelon-env')}", "echelon-env VERSION")


@pytest.mark.parametrize("name", COMMANDS)
def test_what_commands_print(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = output(name)
    assert text == (GOLDENS / f"{name}.txt").read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= 80


if __name__ == "__main__":
    GOLDENS.mkdir(exist_ok=True)
    for each in sys.argv[1:] or COMMANDS:
        (GOLDENS / f"{each}.txt").write_text(output(each), encoding="utf-8")
    Path("tiny.toml").unlink()
