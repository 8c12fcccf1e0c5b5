"""The public names of both packages: docs/api.md lists the modules' `__all__`, and `test_docs` keeps it current."""

import importlib
import re

import pytest

from project.test_docs import PAGES, ROOT, load

GENERATE = load(ROOT / "docs" / "generate.py")


@pytest.mark.parametrize("name", GENERATE.PUBLIC_MODULES)
def test_public_names_exist_and_are_documented(name):
    module = importlib.import_module(name)
    undocumented = [public for public, summary in GENERATE.summaries(module).items() if not summary]
    assert not undocumented


def test_pages_and_examples_import_public_names_only():
    texts = [page.read_text() for page in (*PAGES, *(ROOT / "examples").glob("*.[ip]*"))]
    imports = [found for text in texts for found in re.findall(r"from (echelon_env[\w.]*) import ([\w, ]+)", text)]
    assert imports
    for module, names in imports:
        assert module in GENERATE.PUBLIC_MODULES, module
        public = importlib.import_module(module).__all__
        assert {name.split()[0] for name in names.split(",")} <= {*public}, f"{module}: {names}"
