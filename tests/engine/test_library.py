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
from echelon_env.engine.state import MECH
from echelon_env.engine.tick import begin_battle, step_range
from echelon_env.opponents.handicap import rotate_directions

PACKAGE = Path(echelon_env.__file__).parent

pytestmark = pytest.mark.skipif(kernels.backend().name != "library", reason="this checkout has no library")


@pytest.fixture
def package(tmp_path):
    """A copy of the library, its manifest and the kernels' sources."""
    shutil.copytree(PACKAGE / _library.FOLDER, tmp_path / _library.FOLDER)
    for name in json.loads((tmp_path / _library.FOLDER / _library.MANIFEST).read_text())["sources"]:
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        shutil.copy(PACKAGE / name, tmp_path / name)
    return tmp_path


def edit_manifest(package, **changes):
    """Write another manifest, which was built so."""
    path = package / _library.FOLDER / _library.MANIFEST
    manifest = json.loads(path.read_text()) | changes
    path.write_text(json.dumps(manifest | {"manifest_sha256": _library.manifest_digest(manifest)}))


def library_file(package):
    [path] = {*(package / _library.FOLDER).glob("echelon.*")} - {package / _library.FOLDER / _library.MODULE}
    return path


def test_an_untouched_copy_is_loaded(package):
    assert _library.load(package).description == kernels.backend().reason


def test_a_flipped_bit_is_found_before_loading(package):
    path = library_file(package)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    with pytest.raises(_library.LibraryError, match="is damaged"):
        _library.load(package)


def test_a_foreign_library_is_refused(package):
    library_file(package).write_bytes(b"\x7fELF of somebody else")
    with pytest.raises(_library.LibraryError, match="is damaged"):
        _library.load(package)


def test_a_missing_library_is_refused(package):
    library_file(package).unlink()
    with pytest.raises(_library.LibraryError, match="is damaged"):
        _library.load(package)


def test_a_damaged_module_for_browsers_is_refused(package):
    assert _library.read_module(package)[:4] == b"\0asm"
    with (package / _library.FOLDER / _library.MODULE).open("ab") as file:
        file.write(b"x")
    with pytest.raises(_library.LibraryError, match="is damaged"):
        _library.read_module(package)


def test_an_edited_kernel_is_named(package):
    with (package / "engine" / "zone.py").open("a") as file:
        file.write("# edited\n")
    with pytest.raises(_library.LibraryError, match=r"engine/zone\.py has changed since the library was built"):
        _library.load(package)


def test_an_installation_without_sources_is_trusted(package):
    for path in package.rglob("*.py"):
        path.unlink()
    _library.load(package)


def test_line_ends_are_no_change(package):
    path = package / "engine" / "zone.py"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    _library.load(package)


def test_another_machines_library_is_refused(package):
    edit_manifest(package, target="plan9-mips")
    with pytest.raises(_library.LibraryError, match=f"for plan9-mips, this machine is {_library.machine()}"):
        _library.load(package)


def test_an_old_processor_is_named(package):
    edit_manifest(package, levels={"x86-64-v9": 9})
    with pytest.raises(_library.LibraryError, match="processor is older than x86-64-v9"):
        _library.load(package)


DEEP = 100_000 * "[" + 100_000 * "]"


@pytest.mark.parametrize("text", ["", "[]", "{}", json.dumps({"target": _library.machine()}), "{", "null", DEEP])
def test_a_damaged_manifest_is_named(package, text):
    (package / _library.FOLDER / _library.MANIFEST).write_text(text)
    with pytest.raises(_library.LibraryError, match=r"manifest\.json cannot be read"):
        _library.load(package)


def entries_with(**changes):
    def damage(manifest):
        manifest["entries"]["echelon_env.engine.tick.step_range"] |= changes

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        lambda manifest: manifest.update(levels={}),
        lambda manifest: manifest.update(levels={"x86-64-v9": 0}),
        lambda manifest: manifest.update(entries={}),
        entries_with(symbol="echelon_begin_battle"),
        entries_with(symbol="no_such_symbol"),
        entries_with(arguments={}),
        entries_with(arguments={"tables": {"dtype": "<f8", "axes": 2}}),
        entries_with(arguments={"tables": "int64"}),
    ],
)
def test_a_manifest_that_was_edited_is_damaged(package, damage):
    path = package / _library.FOLDER / _library.MANIFEST
    manifest = json.loads(path.read_text())
    damage(manifest)
    path.write_text(json.dumps(manifest))
    for read in (_library.load, _library.read_module):
        with pytest.raises(_library.LibraryError, match=r"manifest\.json is damaged"):
            read(package)


def put(kind, path):
    path.unlink()
    if kind == "device":
        path.symlink_to("/dev/zero")
    else:
        getattr(os, kind)(path)


@pytest.mark.skipif(os.name == "nt", reason="this system has no such files")
@pytest.mark.parametrize("kind", ["mkfifo", "mkdir", "device"])
def test_no_special_file_is_read(package, kind):
    manifest = package / _library.FOLDER / _library.MANIFEST
    library = library_file(package)
    put(kind, library)
    with pytest.raises(_library.LibraryError, match=f"{library.name} is damaged"):
        _library.load(package)
    put(kind, manifest)
    with pytest.raises(_library.LibraryError, match=r"manifest\.json cannot be read .*not a regular file"):
        _library.load(package)


@pytest.mark.parametrize("text", ["{}", DEEP])
def test_with_a_damaged_manifest_numba_compiles_and_the_backend_has_the_reason(package, monkeypatch, text):
    manifest = package / _library.FOLDER / _library.MANIFEST
    manifest.write_text(text)
    monkeypatch.setattr(kernels, "__file__", str(package / "engine" / "kernels.py"))
    chosen, library = kernels._choose.__wrapped__()  # not cached
    assert (chosen.name, library) == ("jit", None)
    assert chosen.reason.startswith(f"{manifest} cannot be read")


def test_no_library_at_all(tmp_path):
    with pytest.raises(_library.LibraryError, match=f"no library is installed for {_library.machine()}"):
        _library.load(tmp_path)


@pytest.mark.parametrize(
    "dtype", [np.dtype("<f4"), np.dtype("?"), MECH, np.dtype([("a", "u1"), ("b", "<f8", (3,))], align=True)]
)
def test_a_described_dtype_is_found_again(dtype):
    assert _library.dtype_of(json.loads(json.dumps(_library.describe_dtype(dtype)))) == dtype


def rotate(observations=None, keys=None, seconds=None, aim_error=0.1):
    """Call an entry point with one argument changed."""
    rows = np.zeros((2, 1034), np.float32) if observations is None else observations
    keys = np.zeros(2, np.uint64) if keys is None else keys
    rotate_directions(rows, keys, np.zeros(2, np.int64) if seconds is None else seconds, aim_error)


def read_only(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"observations": np.zeros((2, 1034))}, "observations: expected an array of float32 with 2 axes, got float64"),
        ({"observations": np.zeros(1034, np.float32)}, r"with 2 axes, got float32 \(1034,\)"),
        ({"observations": np.zeros((2, 1034), ">f4")}, "expected an array of float32"),
        ({"observations": [[0.0]]}, "got <class 'list'>"),
        ({"observations": np.zeros((2, 1034), np.float32, "F")}, "expected an aligned, C-contiguous, writable array"),
        ({"observations": np.zeros((2, 2068), np.float32)[:, ::2]}, "expected an aligned, C-contiguous"),
        ({"observations": read_only(np.zeros((2, 1034), np.float32))}, "expected an aligned, C-contiguous, writable"),
        (
            {"observations": np.zeros(2 * 1034 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(2, 1034)},
            "expected an aligned",
        ),
        ({"keys": np.zeros(2, np.int64)}, "keys: expected an array of uint64"),
        ({"aim_error": "0.1"}, "aim_error: expected float64, got '0.1'"),
        ({"aim_error": None}, "aim_error: expected float64, got None"),
    ],
)
def test_an_argument_of_another_type_is_an_error(changed, message):
    rotate()
    with pytest.raises(TypeError, match=message):
        rotate(**changed)


def test_an_integer_argument_is_checked():
    engine = BattleEngine("duel")
    for wrong in (1.0, "1", 2**63, None):
        with pytest.raises(TypeError, match="last: expected int64"):
            engine.observation_rows.write(0, wrong, 0, 0)


def test_the_tuples_of_arrays_are_checked():
    engine = BattleEngine("duel")
    with pytest.raises(TypeError, match="tables: expected a named tuple of rules, classes"):
        begin_battle.bind(engine.state, engine.state)
    with pytest.raises(TypeError, match=r"state\.mechs: expected an array of"):
        begin_battle.bind(engine.tables, engine.state._replace(mechs=engine.state.teams))
    with pytest.raises(TypeError, match="state: expected a named tuple"):
        begin_battle.bind(engine.tables, tuple(engine.state))


def test_the_number_of_arguments_is_checked():
    engine = BattleEngine("duel")
    with pytest.raises(TypeError, match=r"expected 4 arguments \(first, last, at_once, part\), got 2"):
        engine.observation_rows.write(0, 1)
    with pytest.raises(TypeError, match="expected 11 arguments"):
        step_range(engine.tables)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda entry: pickle.loads(pickle.dumps(entry))])
def test_a_copied_entry_point_is_the_same(copied):
    assert copied(step_range) is step_range


def test_a_deep_copy_binds_its_own_arrays():
    engine = BattleEngine("duel")
    engine.reset([1])
    before = {name: array.copy() for name, array in engine.state._asdict().items()}
    twin = copy.deepcopy(engine)
    actions = np.ones((1, 2, engine.action_dim), np.float32)
    twin.step(actions)
    assert all((before[name].tobytes() == array.tobytes()) for name, array in engine.state._asdict().items())
    assert twin.state.battles["step_count"][0] == 1


def test_a_bound_array_cannot_be_moved():
    """NumPy would free memory that the machine code writes to."""
    engine = BattleEngine("duel")
    engine.reset([1])
    with pytest.raises(ValueError, match="cannot resize an array"):
        engine.state.voxels.resize((10**8,))
    engine.step(np.zeros((1, 2, engine.action_dim), np.float32))
