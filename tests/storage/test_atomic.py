import errno
import json
import os
import stat
from pathlib import Path

import pytest

from echelon_env.storage import atomic


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    atomic.write_json(path, {"x": 1})

    def fail(handle):
        raise OSError(28, "disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full") as caught:
        atomic.write_json(path, {"x": 2})
    assert caught.value.filename == str(path)
    with pytest.raises(FileNotFoundError) as caught:
        atomic.write_json(tmp_path / "none" / "a.json", {})
    assert caught.value.filename == str(tmp_path / "none" / "a.json")
    monkeypatch.undo()
    with pytest.raises(ValueError, match="JSON compliant"):
        atomic.write_json(path, {"x": float("nan")})
    assert json.loads(path.read_text()) == {"x": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


def test_files_are_readable_as_the_umask_says(tmp_path):
    previous = os.umask(0o022)
    try:
        atomic.write_json(tmp_path / "a.json", {})
        with atomic.new_folder(tmp_path / "folder"):
            pass
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o755


def test_a_folder_appears_when_it_is_complete(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        interrupted_folder(tmp_path / "new")
    assert list(tmp_path.iterdir()) == []
    with atomic.new_folder(tmp_path / "new") as temporary:
        (temporary / "file").write_text("x")
        assert not (tmp_path / "new").exists()
    assert (tmp_path / "new" / "file").read_text() == "x"


def interrupted_folder(path):
    with atomic.new_folder(path) as temporary:
        (temporary / "file").write_text("x")
        raise KeyboardInterrupt


def mount_point(empty, monkeypatch):
    """Neither removed nor replaced, and nothing is renamed into it from outside."""
    stock_rename, stock_rmdir = os.rename, os.rmdir

    def rename(source, target):
        if empty in (Path(source), Path(target)) or empty not in Path(source).parents:
            raise OSError(errno.EXDEV, "Invalid cross-device link", str(source))
        stock_rename(source, target)

    def rmdir(path, **arguments):
        if Path(path) == empty:
            raise OSError(errno.EBUSY, "Device or resource busy", str(path))
        stock_rmdir(path, **arguments)

    monkeypatch.setattr(os, "rename", rename)
    monkeypatch.setattr(os, "rmdir", rmdir)
    return empty


def working_directory(empty, monkeypatch):
    monkeypatch.chdir(empty)
    return Path(".")


def link(empty, monkeypatch):
    path = empty.with_name("link")
    path.symlink_to(empty)
    return path


@pytest.mark.parametrize("place", [mount_point, working_directory, link, lambda empty, _: empty])
def test_an_empty_folder_is_filled_and_kept_if_the_block_fails(tmp_path, monkeypatch, place):
    empty = tmp_path / "empty"
    empty.mkdir(mode=0o750)
    path, number = place(empty, monkeypatch), empty.stat().st_ino
    with pytest.raises(KeyboardInterrupt):
        interrupted_folder(path)
    assert list(path.iterdir()) == []
    with atomic.new_folder(path) as folder:
        (folder / "deep").mkdir()
        (folder / "deep" / "whole").touch()
        assert not (path / "deep").exists()
    assert [found.relative_to(empty).as_posix() for found in sorted(empty.rglob("*"))] == ["deep", "deep/whole"]
    assert (empty.stat().st_ino, stat.S_IMODE(empty.stat().st_mode)) == (number, 0o750)
    assert {each.name for each in tmp_path.iterdir()} <= {"empty", "link"}


def test_the_target_of_a_dangling_link_is_made(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "missing" / "folder")
    with atomic.new_folder(tmp_path / "link") as folder:
        (folder / "whole").touch()
    assert (tmp_path / "missing" / "folder" / "whole").exists() and (tmp_path / "link").is_symlink()


def test_what_comes_into_an_empty_folder_meanwhile_is_not_replaced(tmp_path):
    def fill():
        with atomic.new_folder(tmp_path) as folder:
            for file in (folder / "a", folder / "b"):
                file.write_text("ours")
            (tmp_path / "b").write_text("theirs")

    with pytest.raises(FileExistsError) as caught:
        fill()
    assert caught.value.filename == str(tmp_path / "b")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"b": "theirs"}


def test_names_as_long_as_the_file_system_has_them(tmp_path):
    path = tmp_path / ("x" * 255)
    with atomic.new_folder(path) as folder:
        atomic.write_json(folder / ("y" * 255), 1)
    assert [each.name for each in path.iterdir()] == ["y" * 255]


def dangling_loop(path):
    path.symlink_to(path)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (Path.touch, "is not an empty folder"),
        (dangling_loop, "is not an empty folder"),
        (lambda path: (path / ".hidden").mkdir(parents=True), r"it holds '\.hidden'"),
        (lambda path: path.parent.touch(), "is not a folder"),
        (lambda path: path.mkdir(), "is not writable"),
        (lambda path: None, "too long"),
    ],
)
def test_where_no_folder_can_be_written_it_is_said_before_the_work(tmp_path, monkeypatch, make, reason):
    path = tmp_path / "parent" / ("x" * 256 if reason == "too long" else "folder")
    if "is not a folder" not in reason:
        path.parent.mkdir()
    monkeypatch.setattr(os, "access", lambda place, mode: "writable" not in reason or place != path)
    make(path)
    with pytest.raises(OSError, match=reason):
        atomic.check_new_folder(path)
    with pytest.raises(OSError, match=reason), atomic.new_folder(path):
        pytest.fail("worked")


def test_errors_name_the_folder_and_not_the_temporary_one(tmp_path):
    with pytest.raises(OSError, match="full") as caught, atomic.new_folder(tmp_path / "new") as folder:
        raise OSError(28, "full", str(folder / "file"))
    assert caught.value.filename == str(tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_free_paths(tmp_path):
    path = tmp_path / "a.png"
    assert atomic.free_path(path) == path
    path.touch()
    (tmp_path / "a-2.png").mkdir()
    assert atomic.free_path(path) == tmp_path / "a-3.png"
