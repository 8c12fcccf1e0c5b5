import hashlib
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pytest

import echelon_env
from echelon_env.evaluate import stamp
from echelon_env.evaluate.stamps import ENGINE_SOURCES, OPPONENT_SOURCES, source_hash

PACKAGE = Path(echelon_env.__file__).resolve().parent


def test_a_stamp_names_versions_and_hashes():
    found = stamp()
    assert found["package"] == echelon_env.__version__
    assert (found["numpy"], found["numba"]) == (np.__version__, version("numba"))
    assert found["engine_hash"] == source_hash(PACKAGE, ENGINE_SOURCES)
    assert found["opponents_hash"] == source_hash(PACKAGE, OPPONENT_SOURCES)
    assert len({found["engine_hash"], found["opponents_hash"]}) == 2
    assert found["scipy"] == version("scipy")
    assert stamp() == found


@pytest.mark.parametrize("installed", [True, False])
def test_torch_is_named_where_it_is_installed(monkeypatch, installed):
    def find(name):
        if name == "torch" and not installed:
            raise PackageNotFoundError(name)
        return "1.2.3"

    monkeypatch.setattr("importlib.metadata.version", find)
    assert stamp().get("torch") == ("1.2.3" if installed else None)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """Another place with the package's sources; its files change from test to test."""
    folder = tmp_path_factory.mktemp("checkouts") / "elsewhere"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_the_hashes_are_of_what_was_imported(checkout):
    """A file that is edited after the import changes nothing."""
    code = (
        "import sys, pathlib, types; folder = pathlib.Path(sys.argv[1]); package = types.ModuleType('copied');"
        "package.__path__ = [str(folder)]; sys.modules['copied'] = package;"
        "inner = types.ModuleType('copied.evaluate'); inner.__path__ = [str(folder / 'evaluate')];"
        "sys.modules['copied.evaluate'] = inner; from copied.evaluate import stamps;"
        "before = [stamps.source_hash(folder, s) for s in (stamps.ENGINE_SOURCES, stamps.OPPONENT_SOURCES)];"
        "[f.write_bytes(f.read_bytes() + b' ') for f in (folder / 'catalog.py', folder / 'evaluate' / 'players.py')];"
        "found = stamps.stamp(); assert [found['engine_hash'], found['opponents_hash']] == before;"
        "assert before[0] != stamps.source_hash(folder, stamps.ENGINE_SOURCES)"
    )
    subprocess.run([sys.executable, "-c", code, str(checkout)], check=True)
    for file in ("catalog.py", "evaluate/players.py"):
        shutil.copy(PACKAGE / file, checkout / file)


def test_the_hash_is_the_same_in_another_checkout(checkout):
    assert source_hash(checkout, ENGINE_SOURCES) == stamp()["engine_hash"]
    for file in checkout.rglob("*.*"):
        if file.suffix in (".py", ".toml"):
            file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    (checkout / "engine" / "__pycache__").mkdir()
    (checkout / "engine" / "__pycache__" / "core.cpython-311.pyc").write_bytes(b"\0")
    assert source_hash(checkout, ENGINE_SOURCES) == stamp()["engine_hash"]
    assert source_hash(checkout, OPPONENT_SOURCES) == stamp()["opponents_hash"]


@pytest.mark.parametrize(
    ("file", "engine", "opponents"),
    [
        ("engine/damage.py", True, False),
        ("terrain/biomes/urban.py", True, False),
        ("catalog.py", True, False),
        ("config.py", True, False),
        ("controlled.py", True, False),
        ("map_config.py", True, False),
        ("schema.py", True, False),
        ("scenario.py", True, False),
        ("observations.py", True, False),
        ("actions.py", True, False),
        ("scenario_files/duel.toml", True, False),
        ("opponents/scripted.py", False, True),
        ("evaluate/players.py", False, True),
        ("render/palette.py", False, False),
        ("evaluate/stamps.py", False, False),
        ("cli/bench.py", False, False),
    ],
)
def test_what_changes_a_battle_changes_the_hash(checkout, file, engine, opponents):
    before = source_hash(checkout, ENGINE_SOURCES), source_hash(checkout, OPPONENT_SOURCES)
    (checkout / file).write_bytes((checkout / file).read_bytes() + b"\n")
    assert (source_hash(checkout, ENGINE_SOURCES) != before[0]) == engine
    assert (source_hash(checkout, OPPONENT_SOURCES) != before[1]) == opponents


def test_names_and_ends_of_files_count(tmp_path):
    for name, text in (("a.py", "xy"), ("b.py", "z")):
        (tmp_path / name).write_text(text)
    plain = source_hash(tmp_path, ["*.py"])
    assert plain == hashlib.sha256(b"a.py\n2\nxyb.py\n1\nz").hexdigest()
    assert source_hash(tmp_path, ["b.py", "a.py", "*.py"]) == plain
    (tmp_path / "a.py").write_text("x")
    (tmp_path / "b.py").write_text("yz")
    moved = source_hash(tmp_path, ["*.py"])
    (tmp_path / "b.py").rename(tmp_path / "c.py")
    assert len({plain, moved, source_hash(tmp_path, ["*.py"])}) == 3


def test_all_that_the_engine_imports_is_in_its_hash():
    """Every module of the package that the engine and the configuration import is one of the stamp's sources."""
    code = (
        "import sys, types; package = types.ModuleType('echelon_env'); package.__path__ = [sys.argv[1]];"
        "sys.modules['echelon_env'] = package; import echelon_env.engine.core;"
        "print(*[m.__file__ for n, m in sys.modules.items() if n.startswith('echelon_env.')])"
    )
    run = subprocess.run([sys.executable, "-c", code, str(PACKAGE)], capture_output=True, text=True, check=True)
    imported = {Path(file).resolve() for file in run.stdout.split()}
    stamped = {path for pattern in ENGINE_SOURCES for path in PACKAGE.glob(pattern)}
    assert len(imported) > 20
    assert imported <= stamped
