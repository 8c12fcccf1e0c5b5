"""The build hook. Hatchling is no requirement of the tests, so a bare class stands for its interface."""

import importlib.util
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Interface:
    def __class_getitem__(cls, item):
        return cls

    def __init__(self, root):
        self.root = str(root)


@pytest.fixture
def hook(monkeypatch):
    """The hook's class where LLVM is not installed."""
    interface = types.ModuleType("hatchling.builders.hooks.plugin.interface")
    interface.BuildHookInterface = Interface
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    for name in ("native.build", "native.emit"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    monkeypatch.delenv("ECHELON_TARGET", raising=False)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.MachineCodeHook


@pytest.mark.parametrize("target", [None, "linux-aarch64"])
def test_a_wheel_without_its_compilers_is_not_built(hook, monkeypatch, target):
    monkeypatch.setattr(hook, "_compiles_here", lambda self: True)
    if target:
        monkeypatch.setenv("ECHELON_TARGET", target)
    with pytest.raises(RuntimeError, match=r"no machine code could be built \(.*llvmlite.*ECHELON_TARGET=none"):
        hook(ROOT).initialize("standard", {})


def test_a_wheel_without_machine_code_can_be_asked_for(hook, monkeypatch):
    monkeypatch.setenv("ECHELON_TARGET", "none")
    data = {}
    hook(ROOT).initialize("standard", data)
    assert data == {}


def test_machines_without_compilers_get_a_wheel_without_machine_code(hook, tmp_path):
    required = "numba; sys_platform == 'plan9'"
    (tmp_path / "pyproject.toml").write_text(f'[build-system]\nrequires = ["hatchling", "{required}"]\n')
    data = {}
    hook(tmp_path).initialize("standard", data)
    assert data == {}
