"""The library of machine code: what is refused before it is loaded, and arguments of its functions."""

import copy
import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

import echelon_env
from echelon_env import BattleEngine
from echelon_env.engine import _library, kernels
from echelon_env.engine.tick import begin_battle, step_range
from echelon_env.opponents.handicap import rotate_directions

PACKAGE = Path(echelon_env.__file__).parent
DEEP = 100_000 * "[" + 100_000 * "]"

pytestmark = pytest.mark.skipif(kernels.backend().name != "library", reason="this checkout has no library")


@pytest.fixture
def package(tmp_path):
    """A copy of the library, its manifest and the kernels' sources."""
    shutil.copytree(PACKAGE / _library.FOLDER, tmp_path / _library.FOLDER)
    for name in json.loads(manifest_file(tmp_path).read_text())["sources"]:
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        shutil.copy(PACKAGE / name, tmp_path / name)
    return tmp_path


def manifest_file(package):
    return package / _library.FOLDER / _library.MANIFEST


def library_file(package):
    folder = package / _library.FOLDER
    [path] = {*folder.glob("echelon.*")} - {folder / name for name in (_library.MODULE, _library.PTX)}
    return path


def flip_a_bit(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def build(package, **changes):
    """Write another manifest, which was built so."""
    manifest = json.loads(manifest_file(package).read_text()) | changes
    manifest_file(package).write_text(json.dumps(manifest | {"manifest_sha256": _library.manifest_digest(manifest)}))


def edit(package, **changes):
    """Change the manifest's entry for `step_range`."""
    manifest = json.loads(manifest_file(package).read_text())
    manifest["entries"]["echelon_env.engine.tick.step_range"] |= changes
    manifest_file(package).write_text(json.dumps(manifest))


def put(kind, path):
    path.unlink()
    if kind == "device":
        path.symlink_to("/dev/zero")
    else:
        getattr(os, kind)(path)


def test_an_untouched_copy_is_loaded_also_without_sources_and_with_other_line_ends(package):
    assert _library.load(package).description == kernels.backend().reason
    assert _library.read_built(package, _library.MODULE)[:4] == b"\0asm"
    source = package / "engine" / "zone.py"
    source.write_bytes(source.read_bytes().replace(b"\n", b"\r\n"))
    _library.load(package)
    for path in package.rglob("*.py"):
        path.unlink()
    _library.load(package)


REFUSED = {
    "flipped bit": (lambda package: flip_a_bit(library_file(package)), "is damaged"),
    "foreign": (lambda package: library_file(package).write_bytes(b"\x7fELF of another"), "is damaged"),
    "missing": (lambda package: library_file(package).unlink(), "is damaged"),
    "edited kernel": (
        lambda package: (package / "engine" / "zone.py").write_text("# edited"),
        r"engine/zone\.py has changed since the library was built",
    ),
    "other machine": (lambda package: build(package, target="plan9-mips"), "for plan9-mips, this machine is "),
    "old processor": (lambda package: build(package, levels={"x86-64-v9": 9}), "is older than x86-64-v9"),
    "other symbol": (lambda package: edit(package, symbol="echelon_begin_battle"), r"manifest\.json is damaged"),
    "other arguments": (lambda package: edit(package, arguments={"tables": "int64"}), r"manifest\.json is damaged"),
    "no manifest": (lambda package: manifest_file(package).unlink(), "no library is installed for "),
    **{
        f"manifest {text[:9]!r}": (
            lambda package, text=text: manifest_file(package).write_text(text),
            r"manifest\.json cannot be read",
        )
        for text in ("", "[]", "{}", "{", "null", DEEP)
    },
}


@pytest.mark.parametrize(("damage", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_was_not_built_here_from_these_kernels_is_refused(package, damage, reason):
    damage(package)
    with pytest.raises(_library.LibraryError, match=reason):
        _library.load(package)


@pytest.mark.parametrize("name", [_library.MODULE, _library.PTX])
def test_damaged_code_for_browsers_and_gpus_is_refused(package, name):
    assert _library.read_built(package, name)
    flip_a_bit(package / _library.FOLDER / name)
    with pytest.raises(_library.LibraryError, match="is damaged"):
        _library.read_built(package, name)


@pytest.mark.skipif(os.name == "nt", reason="this system has no such files")
@pytest.mark.parametrize("kind", ["mkfifo", "mkdir", "device"])
def test_no_special_file_is_read(package, kind):
    put(kind, library_file(package))
    with pytest.raises(_library.LibraryError, match="is damaged"):
        _library.load(package)
    put(kind, manifest_file(package))
    with pytest.raises(_library.LibraryError, match=r"manifest\.json cannot be read .*not a regular file"):
        _library.load(package)


def test_with_a_damaged_manifest_numba_compiles_and_the_backend_has_the_reason(package, monkeypatch):
    manifest_file(package).write_text("{}")
    monkeypatch.setattr(kernels, "__file__", str(package / "engine" / "kernels.py"))
    chosen, library = kernels._choose.__wrapped__()  # not cached
    assert (chosen.name, library) == ("jit", None)
    assert chosen.reason.startswith(f"{manifest_file(package)} cannot be read")


def rotate(observations=None, keys=None, aim_error=0.1):
    """Call an entry point with one argument changed."""
    rows = np.zeros((2, 902), np.float32) if observations is None else observations
    rotate_directions(rows, np.zeros(2, np.uint64) if keys is None else keys, np.zeros(2, np.int64), aim_error)


def read_only(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"observations": np.zeros((2, 902))}, "observations: expected an array of float32 with 2 axes, got float64"),
        ({"observations": np.zeros(902, np.float32)}, r"with 2 axes, got float32 \(902,\)"),
        ({"observations": np.zeros((2, 902), ">f4")}, "expected an array of float32"),
        ({"observations": [[0.0]]}, "got <class 'list'>"),
        ({"observations": np.zeros((2, 902), np.float32, "F")}, "expected an aligned, C-contiguous, writable array"),
        ({"observations": read_only(np.zeros((2, 902), np.float32))}, "expected an aligned, C-contiguous, writable"),
        (
            {"observations": np.zeros(2 * 902 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(2, 902)},
            "expected an aligned",
        ),
        ({"keys": np.zeros(2, np.int64)}, "keys: expected an array of uint64"),
        ({"aim_error": "0.1"}, "aim_error: expected float64, got '0.1'"),
    ],
)
def test_an_argument_of_another_type_is_an_error(changed, message):
    rotate()
    with pytest.raises(TypeError, match=message):
        rotate(**changed)


def test_integers_tuples_and_the_number_of_arguments_are_checked():
    engine = BattleEngine("duel")
    for wrong in (1.0, 2**63, None):
        with pytest.raises(TypeError, match="last: expected int64"):
            engine.observation_rows.write(0, wrong, 0, 0)
    with pytest.raises(TypeError, match=r"expected 4 arguments \(first, last, at_once, part\), got 2"):
        engine.observation_rows.write(0, 1)
    with pytest.raises(TypeError, match="expected 11 arguments"):
        step_range(engine.tables)
    with pytest.raises(TypeError, match="tables: expected a named tuple of rules, classes"):
        begin_battle.bind(engine.state, engine.state)
    with pytest.raises(TypeError, match=r"state\.mechs: expected an array of"):
        begin_battle.bind(engine.tables, engine.state._replace(mechs=engine.state.teams))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda entry: pickle.loads(pickle.dumps(entry))])
def test_a_copied_entry_point_is_the_same(copied):
    assert copied(step_range) is step_range


def test_a_bound_array_cannot_be_moved():
    """NumPy would free memory that the machine code writes to."""
    engine = BattleEngine("duel")
    engine.reset([1])
    with pytest.raises(ValueError, match="cannot resize an array"):
        engine.state.voxels.resize((10**8,))
    engine.step(np.zeros((1, 2, engine.action_dim), np.float32))
