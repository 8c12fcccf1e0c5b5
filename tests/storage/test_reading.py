import os

import pytest

from echelon_env.storage.reading import read_regular_file


def test_a_regular_file_is_read_up_to_a_limit(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    assert read_regular_file(tmp_path / "file", 5) == b"12345"
    with pytest.raises(ValueError, match="larger than the limit of 4 bytes"):
        read_regular_file(tmp_path / "file", 4)


def test_a_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="not a regular file"):
        read_regular_file(tmp_path / "pipe", 5)
    with pytest.raises(OSError, match="directory"):
        read_regular_file(tmp_path, 5)
