"""The folder of a training run.

::

    run.json        the resolved configuration, seeds, ancestry, versions, machine and commands
    lock            empty; held by the process that trains
    diff.patch      uncommitted changes of the checkout, if any
    metrics.jsonl   one line of metrics per update
    metrics-bad.jsonl  lines that were none when the run was resumed
    curves.png      the metrics as a picture
    statistics.json battle statistics by opponent and mech class, see `echelon_env.evaluate.statistics_file`
    tensorboard/    the metrics for TensorBoard
    checkpoints/    see `checkpoint`
    last.json       the name of the newest checkpoint
"""

from __future__ import annotations

import contextlib
import datetime
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from echelon_env.config.schema import ConfigError, build, check_fields, to_plain
from echelon_env.evaluate import validation_seed
from echelon_env.networks.checkpoint import LAST_FILE
from echelon_env.networks.checkpoint import RUN_FILE as RUN_FILE
from echelon_env.networks.checkpoint import SEEDS_FILE as SEEDS_FILE
from echelon_env.storage.atomic import free_path, write_bytes, write_json, write_parts
from echelon_env.storage.reading import (
    open_regular_file,
    parse_json,
    read_regular_file,
    version_problem,
    without_waiting,
)
from echelon_train.checkpoints.provenance import git_commit, git_diff, machine, package_versions
from echelon_train.config.train import TrainConfig
from echelon_train.errors import RunFolderError
from echelon_train.runs.metrics import STEPS

if sys.platform != "win32":
    import fcntl

RUN_VERSION = 1
LOCK_FILE = "lock"
METRICS_FILE = "metrics.jsonl"
BAD_METRICS_FILE = "metrics-bad.jsonl"
DIFF_FILE = "diff.patch"
MAX_BYTES = 1 << 22
"""Of ``run.json`` and other files in JSON."""
MAX_METRICS_BYTES = 1 << 28
"""Of the metrics that are read at once, as reports do."""
MOST_DIFF = 2**20
"""Largest patch that is kept, in bytes; a larger one holds data rather than changes of the code."""


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """When and how a run was started or resumed, and with what."""

    started: str
    command: tuple[str, ...]
    git_commit: str | None
    git_diff: dict[str, Any]  # bytes, and the file that has it, or null
    packages: dict[str, str]  # versions
    machine: dict[str, Any]
    policies: dict[str, dict[str, Any]]  # that it plays against, see `Start`


@dataclass(frozen=True, kw_only=True)
class Resumed(Provenance):
    """A resume of a run from so many samples."""

    steps: int


@dataclass(frozen=True, kw_only=True)
class RunRecord(Provenance):
    """What ``run.json`` holds."""

    version: int  # `RUN_VERSION`
    config: dict[str, Any]  # of `TrainConfig`
    seeds: dict[str, int]
    ancestry: tuple[dict[str, Any], ...]  # see `Start`
    resumed: tuple[Resumed, ...] = ()


def claim_folder(path: Path) -> None:
    """Create an empty folder that can be written.

    Raises RunFolderError if it is not empty, and OSError if it cannot be created or written.
    """
    path.mkdir(parents=True, exist_ok=True)
    if any(each.name != LOCK_FILE for each in path.iterdir()):
        raise RunFolderError(f"{path} is not empty; choose another folder, or remove it: runs are never overwritten")
    with tempfile.TemporaryFile(dir=path):
        pass


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock a folder against training by other processes during the block.

    The operating system releases the lock when the process ends for any reason, so the lock file may stay. Windows and
    some network file systems have no such locks; there, other processes are not excluded. An OSError in the block
    without a file name (a full disk) gets the folder's name.

    Raises RunFolderError if another process trains there, and OSError if the folder cannot be written.
    """
    with open(path / LOCK_FILE, "ab", opener=without_waiting) as file:
        if sys.platform != "win32":
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunFolderError(f"{path}: another process is training in this folder") from None
            except OSError:
                pass  # the file system has no locks
        try:
            yield
        except OSError as error:
            error.filename = error.filename or str(path)
            raise


def is_locked(path: Path) -> bool:
    """Whether a process trains in a folder. False where there are no locks, see `locked`. Raises OSError."""
    if not (path / LOCK_FILE).exists():
        return False
    try:
        with locked(path):
            return False
    except RunFolderError:
        return True


@contextlib.contextmanager
def claimed(path: Path, is_kept: Callable[[], bool]) -> Iterator[None]:
    """Claim and lock a folder for the block. A block that fails leaves what was there before, unless `is_kept`.

    Raises as `claim_folder` and `locked`.
    """
    existed = path.exists()
    claim_folder(path)
    with locked(path):
        claim_folder(path)  # again: another process may have used it before this one held the lock
        try:
            yield
        except BaseException:
            if not is_kept():
                with contextlib.suppress(OSError):
                    for entry in path.iterdir():
                        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
                    if not existed:
                        path.rmdir()
            raise


@contextlib.contextmanager
def run_folder(path: Path, config: TrainConfig, start: Mapping[str, Any] = MappingProxyType({})) -> Iterator[None]:
    """Claim and lock a run's folder for the block, and write the run's configuration and provenance into it.

    A run that fails before its first checkpoint leaves nothing, so that it can be started again. `start` are the
    facts of `Start`. Raises as `claim_folder` and `locked`.
    """
    with claimed(path, (path / LAST_FILE).exists):
        seeds = {"run": config.seed, "validation": validation_seed(config.seed)}
        facts = {"version": RUN_VERSION, "config": config.to_dict(), "seeds": seeds, "ancestry": [], "policies": {}}
        write_json(path / RUN_FILE, {**facts, **start, **_provenance(path), "resumed": []})
        yield


def read_json(path: Path, missing: str) -> dict[str, Any]:
    """An object in a JSON file of at most `MAX_BYTES`. Raises RunFolderError, `missing` for no file, and OSError."""
    try:
        document = parse_json(read_regular_file(path, MAX_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        raise RunFolderError(missing) from None
    except ValueError as error:
        raise RunFolderError(f"{path}: expected JSON: {error}") from None
    if not isinstance(document, dict):
        raise RunFolderError(f"{path}: expected an object, got {type(document).__name__}")
    return document


def read_record(path: Path) -> RunRecord:
    """What the file of the run in a folder holds. Raises RunFolderError, with the reason, and OSError."""
    try:
        document = read_json(path / RUN_FILE, f"{path} is no training run: it has no {RUN_FILE}")
        if problem := version_problem(document.get("version"), RUN_VERSION):
            raise ConfigError(problem)
        record: RunRecord = build(RunRecord, document, "")
        check_fields(record, "")
    except ConfigError as error:
        raise RunFolderError(f"{path / RUN_FILE}: {error}") from None
    return record


def read_run_config(path: Path) -> TrainConfig:
    """The configuration of the run in a folder. Raises RunFolderError if it is missing or invalid."""
    return recorded_config(path, read_record(path))


def recorded_config(path: Path, record: RunRecord) -> TrainConfig:
    """The configuration in the record of the run in a folder. Raises RunFolderError if it is invalid."""
    try:
        return TrainConfig.from_dict(record.config)
    except ConfigError as error:
        raise RunFolderError(f"{path / RUN_FILE}: {error}") from None


def record_resume(
    path: Path,
    config: TrainConfig,
    steps: int,
    start: Mapping[str, Any] = MappingProxyType({}),
    policies: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> None:
    """Record in a run's folder that the run is resumed from `steps` samples, with the time, the machine and versions.

    The configuration and the facts of `start` replace the old ones; the `policies` that it plays
    against from now on are kept with the time. Raises RunFolderError, OSError.
    """
    document = to_plain(read_record(path))
    resumed = {"steps": steps, "policies": {**policies}, **_provenance(path)}
    changes = {"config": config.to_dict(), **start, "resumed": [*document["resumed"], resumed]}
    write_json(path / RUN_FILE, {**document, **changes})


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of a run's metrics, each a dict from a metric's name to its value.

    An incomplete last line, left by a killed run, is skipped. Raises OSError, and RunFolderError for a file in another
    format.
    """
    file, metrics = path / METRICS_FILE, []
    try:
        data = read_regular_file(file, MAX_METRICS_BYTES)
    except ValueError as error:
        raise RunFolderError(f"{file}: {error}") from None
    for number, line in enumerate(data.split(b"\n")[:-1], 1):  # the part after the last newline is incomplete
        try:
            metrics.append(_parse_line(line))
        except ValueError as error:
            way_out = f"echelon train --resume {shlex.quote(str(path))} sets it aside"
            raise RunFolderError(f"{file}:{number}: {error} ({way_out})") from None
    return metrics


def _parse_line(line: bytes) -> dict[str, Any]:
    """A line of metrics. Raises ValueError, with the reason."""
    try:
        metrics = parse_json(line)
    except ValueError as error:
        raise ValueError(f"expected a line of JSON: {error}") from None
    if not isinstance(metrics, dict) or type(metrics.get(STEPS)) is not int:
        raise ValueError(f"expected an integer {STEPS!r}")
    return metrics


def rewind_metrics(path: Path, steps: int) -> None:
    """Remove a run's metrics after `steps` samples, because the resumed run writes them again.

    A finished run has written a second line for its last number of samples, which is written again, too. Bad lines are
    moved to another file, with a warning on standard error. The file may be larger than `read_metrics` reads.

    Raises RunFolderError if it is not regular, and OSError, but not for a run without metrics.
    """
    file = path / METRICS_FILE
    if not file.exists():
        return

    def kept(lines: Iterable[bytes]) -> Iterator[bytes]:
        seen: set[int] = set()
        bad, first = [], ""
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                continue  # the last one, which is incomplete
            try:
                at = _parse_line(line)[STEPS]
            except ValueError as error:
                bad.append(line)
                first = first or f"{file}:{number}: {error}"
                continue
            if at <= steps and at not in seen:
                seen.add(at)
                yield line
        if bad:  # before the file that has them is replaced
            aside = free_path(path / BAD_METRICS_FILE)
            write_bytes(aside, b"".join(bad))
            print(f"{first}; bad lines are now in {aside.name}: {len(bad):,}", file=sys.stderr)

    try:
        with open_regular_file(file) as lines:
            write_parts(file, kept(lines))
    except ValueError as error:
        raise RunFolderError(f"{file}: {error}") from None


def differences_from(
    path: Path, config: TrainConfig, policies: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
) -> list[str]:
    """The differences from the run's last start or resume that could change its results.

    Compared are the versions of packages, the commit of the checkout, the machine, the weights of the `policies` (those
    of `Start`) and, in the configuration of the resumed run, the device and the threads of the network. Raises
    RunFolderError.
    """
    record = read_record(path)
    starts: list[Provenance] = [record, *record.resumed]
    before = starts[-1]
    names = ("device", "torch_threads", "compile")
    now = {**package_versions(), "git commit": git_commit(), "machine": machine()}
    now |= {name: getattr(config, name) for name in names}
    then: dict[str, Any] = {**before.packages, "git commit": before.git_commit, "machine": before.machine}
    then |= {name: getattr(read_run_config(path), name) for name in names}
    now |= {name: f"{facts['weights_sha256']}"[:8] for name, facts in policies.items()}
    for start in starts:  # a policy may be missing at some
        then |= {name: f"{facts.get('weights_sha256')}"[:8] for name, facts in start.policies.items()}
    return [f"{name}: {then[name]} then, {now[name]} now" for name in now if name in then and then[name] != now[name]]


def _provenance(path: Path) -> dict[str, Any]:
    """Time, command, commit, versions and machine of a start or resume; the checkout's changes become a file."""
    diff = git_diff()
    file = free_path(path / DIFF_FILE) if 0 < len(diff) <= MOST_DIFF else None
    if file:
        write_bytes(file, diff)
    return {
        "started": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "command": sys.argv,
        "git_commit": git_commit(),
        "git_diff": {"bytes": len(diff), "file": file and file.name},
        "packages": package_versions(),
        "machine": machine(),
    }
