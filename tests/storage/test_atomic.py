import json
import os
import stat

import pytest

from echelon_env.storage import atomic


def test_json_is_replaced_whole(tmp_path):
    path = tmp_path / "a.json"
    atomic.write_json(path, {"x": 1})
    atomic.write_json(path, {"x": 2})
    assert json.loads(path.read_text()) == {"x": 2}
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


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
    assert json.loads(path.read_text()) == {"x": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


def test_non_finite_numbers_are_refused_in_json(tmp_path):
    with pytest.raises(ValueError, match="JSON compliant"):
        atomic.write_json(tmp_path / "a.json", {"x": float("nan")})


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
    with atomic.new_folder(tmp_path / "new") as temporary:
        (temporary / "file").write_text("x")
        assert not (tmp_path / "new").exists()
    assert (tmp_path / "new" / "file").read_text() == "x"


def interrupted_folder(path):
    with atomic.new_folder(path) as temporary:
        (temporary / "file").write_text("x")
        raise KeyboardInterrupt


def test_a_folder_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        interrupted_folder(tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_never_overwritten(tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "file").touch()
    with pytest.raises(FileExistsError), atomic.new_folder(tmp_path / "old"):
        pass


def test_an_empty_folder_is_replaced_and_kept_if_the_block_fails(tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(KeyboardInterrupt):
        interrupted_folder(empty)
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]
    with atomic.new_folder(empty) as folder:
        (folder / "whole").touch()
        assert list(empty.iterdir()) == []
    assert [path.name for path in empty.iterdir()] == ["whole"]


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
