"""Code blocks and commands of the documentation are run, and generated pages are current."""

import doctest
import importlib
import importlib.util
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

import echelon_env
from echelon_env.cli import main
from echelon_env.config import plugins
from echelon_env.config.biomes import BIOMES

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]


def load(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATE = load(ROOT / "docs" / "generate.py")


def python_blocks(*pages):
    for page in pages:
        for i, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)):
            yield pytest.param(code, id=f"{page.name}-{i}")


@pytest.mark.parametrize("code", [*python_blocks(ROOT / "README.md")])
def test_code_blocks_of_the_readme_run_by_themselves(code, tmp_path):
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.mark.long
@pytest.mark.parametrize("code", [*python_blocks(*PAGES[1:])])
def test_code_blocks_run(code, tmp_path, monkeypatch):
    """In this process, because starting a process takes longer than most blocks."""
    monkeypatch.chdir(tmp_path)
    with mock.patch.dict(BIOMES):  # a page registers a biome
        exec(compile(code, "block", "exec"), {"__name__": "__main__"})


def command_lines():
    """Every command line of `echelon` in a block of a page."""
    for page in PAGES:
        for block in re.findall(r"^```\w*\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True) if line.startswith("echelon ") else []
                if words:
                    yield pytest.param(words[1:], id=f"{page.name}: {' '.join(words[:3])}")


@pytest.mark.parametrize("words", [*command_lines()])
def test_commands_take_what_the_pages_give_them(words, monkeypatch):
    """The arguments are parsed only: other tests run the commands, or they take hours."""
    command = plugins.declared(plugins.COMMANDS)[words[0]].load()
    monkeypatch.setattr(command, "run", lambda args: 0)
    assert main(words) == 0


def test_generated_pages_are_current():
    for name, text in GENERATE.PAGES.items():
        assert (GENERATE.FOLDER / name).read_text() == text, f"docs/reference/{name}: run 'make docs'"


@pytest.mark.parametrize("page", [*(ROOT / "docs" / "guide").glob("*.md")], ids=lambda page: page.stem)
def test_pages_of_the_guide_say_what_to_do(page):
    """Measurements, with their dates, commits and intervals, are on the shelf of results, but for quoted examples."""
    lines = page.read_text().splitlines()
    assert len(lines) <= 150
    interval, commit = r"\d \[\d[\d.]*, \d[\d.]*\]|% \[\d|±\s?\d", r"\bcommit `?[0-9a-f]{7,}"
    measured = rf"\b20\d\d-\d\d-\d\d\b|{commit}|{interval}|\bEPYC\b|\bXeon\b"
    assert [line for line in lines if re.search(measured, line) and not line.startswith("> ")] == []


def test_links_lead_somewhere():
    for page in (*PAGES, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if not target.startswith(("http", "site:")):  # an address in the site, which its build checks
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_doctests():
    modules = [name for _, name, _ in pkgutil.walk_packages(echelon_env.__path__, "echelon_env.")]
    modules = [name for name in modules if name not in GENERATE.MODULES_OF_OTHERS]
    results = [doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS) for name in modules]
    assert sum(result.attempted for result in results) > 0
    assert sum(result.failed for result in results) == 0
