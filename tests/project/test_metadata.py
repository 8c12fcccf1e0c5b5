"""What is written outside pyproject.toml and the Makefile agrees with them."""

import re
import runpy
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_citation_and_the_changelog_agree_with_the_version_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    check_texts = runpy.run_path(str(ROOT / ".ci" / "release_check.py"))["check_texts"]
    assert check_texts() == project["version"]


def test_the_hooks_of_pre_commit_call_the_tools_of_make_lint():
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    tools = re.findall(r"\$\(BIN\)/([\w-]+(?: check| format)?)", lint)
    assert tools
    assert re.findall(r"entry: \.venv/bin/([\w-]+(?: check| format)?)", hooks) == tools
