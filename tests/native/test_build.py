import hashlib
import shutil
from concurrent.futures import Future

import pytest
from native.targets import TARGETS

from echelon_env.engine import kernels
from native import build

pytestmark = pytest.mark.skipif(kernels.backend().name != "library", reason="this checkout has no library")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A copy of the library, which `is_current` looks at."""
    copy = shutil.copytree(build.FOLDER, tmp_path / "machine_code")
    monkeypatch.setattr(build, "FOLDER", copy)
    return copy


def is_current():
    return build.is_current(build.target_of(None))


def test_a_library_of_the_present_files_is_current(folder):
    assert is_current()


@pytest.mark.parametrize("damage", ["library", "no library", "manifest", "no manifest", "edited manifest"])
def test_a_damaged_library_is_built_again(folder, damage):
    library, manifest = folder / build.target_of(None).library, folder / "manifest.json"
    {
        "library": lambda: library.write_bytes(b""),
        "no library": library.unlink,
        "manifest": lambda: manifest.write_text("{"),
        "no manifest": manifest.unlink,
        "edited manifest": lambda: manifest.write_text(manifest.read_text().replace("echelon_step_range", "echelon_x")),
    }[damage]()
    assert not is_current()


def test_another_targets_library_is_not_current(folder):
    other = next(target for name, target in TARGETS.items() if name != build.target_of(None).name)
    assert not build.is_current(other)


def test_another_builder_is_not_current(folder, monkeypatch):
    monkeypatch.setattr(build, "STAGES", ("lower.py",))
    assert not is_current()


def test_an_object_is_emitted_once(tmp_path, monkeypatch):
    """For each bitcode; one whose file is damaged is emitted again."""
    emitted = []

    def submit(_, __, bitcode, symbol, export, *rest):
        emitted.append(export)
        future = Future()
        future.set_result(bitcode + export.encode())
        return future

    monkeypatch.setattr(build, "bitcode_folder", lambda: tmp_path)
    monkeypatch.setattr(build.ProcessPoolExecutor, "submit", submit)
    jobs = {export: build.Job("add", "a triple", "a processor") for export in ("one", "two")}
    for bitcode, damaged, expected in (
        (b"1", None, ["one", "two"]),
        (b"1", None, []),
        (b"2", None, ["one", "two"]),
        (b"2", "one", ["one"]),
    ):
        (tmp_path / "add.bc").write_bytes(bitcode)
        if damaged is not None:
            (file,) = tmp_path.glob(f"{damaged}.*.o")
            file.write_bytes(file.read_bytes()[:-1])
        entries = {"add": {"symbol": "add", "sha256": hashlib.sha256(bitcode).hexdigest()}}
        assert build.emit_all(entries, jobs) == {export: bitcode + export.encode() for export in jobs}
        assert emitted == expected
        emitted.clear()
    (tmp_path / "add.bc").write_bytes(b"3")
    (tmp_path / file.name).unlink()
    with pytest.raises(RuntimeError, match="has changed during the build"):
        build.emit_all(entries, jobs)


def test_an_unknown_target_is_an_error():
    with pytest.raises(ValueError, match=r"expected a target of linux-x86_64, .*, got 'plan9'"):
        build.target_of("plan9")
