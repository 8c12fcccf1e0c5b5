"""The public names of both packages: docs/reference/api.md lists modules' `__all__`; `test_docs` keeps it current."""

import importlib
import re

import pytest

import echelon_env
import echelon_train
from project.test_docs import GENERATE, PAGES, ROOT


@pytest.mark.parametrize("name", GENERATE.PUBLIC_MODULES)
def test_public_names_exist_and_are_documented(name):
    module = importlib.import_module(name)
    undocumented = [public for public, summary in GENERATE.summaries(module).items() if not summary]
    assert not undocumented


@pytest.mark.parametrize("name", GENERATE.MODULES_OF_OTHERS)
def test_classes_of_modules_that_need_other_libraries_are_documented(name):
    classes = GENERATE.classes_of(name)
    assert classes and all(classes.values())


def is_public(dotted):
    """Whether a name with dots is a public module, or one of its names, perhaps with an attribute."""
    parts = dotted.split(".")
    modules = {".".join(parts[:end]): parts[end] for end in range(1, len(parts))}
    return dotted in (*GENERATE.PUBLIC_MODULES, *GENERATE.MODULES_OF_OTHERS) or any(
        (module in GENERATE.PUBLIC_MODULES and name in importlib.import_module(module).__all__)
        or (module in GENERATE.MODULES_OF_OTHERS and name in GENERATE.classes_of(module))
        for module, name in modules.items()
    )


def test_pages_and_examples_name_public_names_only():
    """The page for developers also names the modules inside."""
    paths = [page for page in (*PAGES, *(ROOT / "examples").glob("*.[ip]*")) if page.name != "development.md"]
    found = {}
    for path in paths:
        text = path.read_text()
        imports = re.findall(r"from (echelon_(?:env|train)[\w.]*) import ([\w, ]+)", text)
        names = [f"{module}.{name.split()[0]}" for module, names in imports for name in names.split(",")]
        found[path.relative_to(ROOT).as_posix()] = [*names, *re.findall(r"\bechelon_(?:env|train)(?:\.\w+)+", text)]
    assert any(found.values())
    assert {page: hidden for page, names in found.items() if (hidden := {n for n in names if not is_public(n)})} == {}


def test_a_name_of_another_module_is_an_error_that_says_where_it_is():
    names = {(module, name) for module, names in echelon_env._ELSEWHERE.items() for name in names}
    assert names >= {("echelon_train", name) for name in echelon_train.__all__}
    for module, name in sorted(names):
        assert is_public(f"{module}.{name}")
        sentence = f"{name} is in {module}: from {module} import {name}"
        with pytest.raises(ImportError, match=sentence):
            getattr(echelon_env, name)
        with pytest.raises(ImportError, match=sentence):
            exec(f"from echelon_env import {name}")
    assert not hasattr(echelon_env, "Unknown")
