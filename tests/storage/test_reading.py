import os

import numpy as np
import pytest

from echelon_env.config.scenario import make_config
from echelon_env.engine.maps import MapPool
from echelon_env.evaluate.seeds import read_seeds
from echelon_env.evaluate.statistics_file import read_statistics
from echelon_env.evaluate.submission import read_submission
from echelon_env.evaluate.suite import load_suite
from echelon_env.networks.checkpoint import named_checkpoint, read_document
from echelon_env.replays import read_replay
from echelon_env.storage.reading import MAX_DEPTH, parse_json, read_regular_file
from echelon_env.wrappers.moments import RunningMoments

DEVICE = "/dev/null"
"""Neither a file nor a pipe, for which a reader would wait for ever."""

TWICE = b'{"format": 1, "format": 2}'


def test_a_regular_file_is_read_up_to_a_limit(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    assert read_regular_file(tmp_path / "file", 5) == b"12345"
    with pytest.raises(ValueError, match="larger than 4 bytes"):
        read_regular_file(tmp_path / "file", 4)


def test_a_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="not a regular file"):
        read_regular_file(tmp_path / "pipe", 5)
    with pytest.raises(OSError, match="directory"):
        read_regular_file(tmp_path, 5)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (TWICE, "expected different keys in each object, got 'format' twice"),
        ('[{"a": {"": 1, "b": 2, "": 3}}]', "expected different keys in each object, got '' twice"),
        (f'{{"{"x" * 10_000}": 1, "{"x" * 10_000}": 1}}', r"got 'x{12}\.\.\.x{13}' twice"),
        ("[1, NaN]", "expected finite numbers, got NaN"),
        ("-Infinity", "expected finite numbers, got -Infinity"),
        ("[0.5, -1e999]", "expected finite numbers, got one beyond"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "expected at most 50 nested values"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "expected at most 50 nested values"),
        ("[1" + ", 1" * 100_000 + "]", "expected at most 100,000 values"),
        ("[1", "delimiter"),
        ("9" * 10_000, "digits"),
        (b"\xff", "utf-8"),
        ("[1]".encode("utf-16"), "utf-8"),
    ],
)
def test_what_readers_could_take_differently_or_not_in_bounded_memory_is_no_json(text, reason):
    with pytest.raises(ValueError, match=reason):
        parse_json(text, max_values=100_000)


def test_objects_are_converted_as_by_the_standard_library():
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert str(parse_json(deep)) == deep
    assert parse_json(b'{"a": [{"b": 1}]}', object_hook=list) == ["a"]
    assert parse_json("[-Infinity, 1e999]", allow_nan=True) == [-np.inf, np.inf]


READERS = {
    "replay": ("battle.replay", read_replay),
    "seeds": ("seeds.txt", read_seeds),
    "suite": ("suite.json", load_suite),
    "statistics": ("statistics.json", read_statistics),
    "submission": ("submission.json", read_submission),
    "scenario": ("scenario.toml", make_config),
    "recipe": ("map.json", lambda path: MapPool.load(path.parent)),
    "moments": ("moments.json", lambda path: RunningMoments((3,)).load(path)),
    "checkpoint": ("checkpoint.json", lambda path: read_document(path.parent)),
    "last checkpoint": ("last.json", named_checkpoint),
}
NO_JSON = "replay", "seeds", "scenario"


@pytest.mark.parametrize(("name", "read"), READERS.values(), ids=READERS)
def test_only_regular_files_are_read(tmp_path, name, read):
    (tmp_path / name).symlink_to(DEVICE)
    with pytest.raises(ValueError, match=rf"{name}.*: .*not a regular file"):
        read(tmp_path / name)


@pytest.mark.parametrize("reader", [reader for reader in READERS if reader not in NO_JSON])
def test_a_key_that_is_there_twice_is_refused(tmp_path, reader):
    name, read = READERS[reader]
    (tmp_path / name).write_bytes(TWICE)
    with pytest.raises(ValueError, match=rf"{name}.*: .*expected different keys in each object, got 'format' twice"):
        read(tmp_path / name)
