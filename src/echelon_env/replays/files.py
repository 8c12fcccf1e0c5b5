"""Files of replays. Reading one executes nothing, and costs bounded time and memory.

A file is a gzip stream of one line of JSON (`FORMAT`, version, and the fields of `Replay`; ``decisions`` is T), and
after it the bytes of the actions (T, M, A) and of the digests (T + 1, 32), in C order, float32 little-endian and uint8.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import zlib
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

import numpy as np

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import ConfigError
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.replays.recorder import check_players
from echelon_env.replays.replay import DIGEST_BYTES, Replay, ReplayError
from echelon_env.storage.atomic import write_bytes
from echelon_env.storage.reading import parse_json, read_regular_file, version_problem

FORMAT = "echelon-replay"
VERSION = 2
MAX_BYTES = 5_000_000
"""Of a file."""
MAX_UNPACKED_BYTES = 1 << 26
MAX_HEADER_BYTES = 1 << 18
MAX_DECISIONS = 20_000

_HEADER: dict[str, type | tuple[type, ...]] = {
    "format": str, "version": int, "config": dict, "seed": int, "map_seed": int, "map_hash": str, "players": list,
    "decisions": int, "voxels_digest": (str, type(None)), "stamp": dict,
}  # fmt: skip

_IN_PAGE = re.compile(rb'<script type="application/octet-stream" id="replay">([A-Za-z0-9+/=]*)</script>')


def write_replay(path: str | os.PathLike[str], replay: Replay) -> None:
    """Write a replay to a file. Raises OSError, and ReplayError for a replay that would be too large to read."""
    write_bytes(Path(path), pack(replay))


def read_replay(path: str | os.PathLike[str]) -> Replay:
    """Read a replay from its file, or from a page with one. Raises ReplayError for any other file, and OSError."""
    try:
        data = read_regular_file(path, MAX_BYTES)
        embedded = _IN_PAGE.search(data)
        return unpack(data if embedded is None else base64.b64decode(embedded[1]))
    except ValueError as error:  # of the file, the page or the replay
        raise ReplayError(f"{os.fspath(path)}: {error}") from None


def pack(replay: Replay) -> bytes:
    """The bytes of a replay's file. Raises ReplayError for a replay that would be too large to read."""
    header = battle_header(replay) | {"decisions": replay.decisions, "voxels_digest": replay.voxels_digest}
    line = json.dumps(header, allow_nan=False).encode() + b"\n"
    plain = line + replay.actions.astype("<f4").tobytes() + replay.digests.tobytes()
    data = gzip.compress(plain, mtime=0)
    sizes = {
        "decisions": (replay.decisions, MAX_DECISIONS), "bytes of the header": (len(line), MAX_HEADER_BYTES),
        "bytes before compression": (len(plain), MAX_UNPACKED_BYTES), "bytes": (len(data), MAX_BYTES),
    }  # fmt: skip
    for what, (size, most) in sizes.items():
        if size > most:
            raise ReplayError(f"the replay would have {size:,} {what}, expected at most {most:,}")
    return data


def battle_header(replay: Replay) -> dict[str, Any]:
    """What the header says of the battle; the rest is what only its course shows."""
    return {
        "format": FORMAT, "version": VERSION, "config": replay.config.to_dict(), "seed": replay.seed,
        "map_seed": replay.map_seed, "map_hash": replay.map_hash, "players": list(replay.players),
        "stamp": dict(replay.stamp),
    }  # fmt: skip


def unpack(data: bytes) -> Replay:
    """The replay in the bytes of a file. Raises ReplayError, with the reason."""
    line, newline, body = _decompress(data).partition(b"\n")
    if not newline or len(line) > MAX_HEADER_BYTES:
        raise ReplayError("not a replay (no header)")
    header = _read_header(line)
    try:
        config = BattleConfig.from_dict(header["config"])
        players = check_players(header["players"])
    except ConfigError as error:
        raise ReplayError(str(error)) from None
    decisions, rows = header["decisions"], config.num_mechs * ACTION_DIM
    most = min(config.max_steps, MAX_DECISIONS)
    if not 0 <= decisions <= most:
        raise ReplayError(f"decisions: expected 0 to {most}, got {shortened(decisions)}")
    split = decisions * rows * 4
    if len(body) != split + (decisions + 1) * DIGEST_BYTES:
        raise ReplayError(f"truncated, or of another layout: {len(body)} bytes after the header")
    return Replay(
        config=config,
        seed=header["seed"],
        map_seed=header["map_seed"],
        map_hash=header["map_hash"],
        players=players,
        actions=np.frombuffer(body[:split], "<f4").reshape(decisions, config.num_mechs, ACTION_DIM),
        digests=np.frombuffer(body[split:], np.uint8).reshape(-1, DIGEST_BYTES),
        voxels_digest=header["voxels_digest"],
        stamp=header["stamp"],
    )


def _decompress(data: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)  # gzip
    try:
        unpacked = unpacker.decompress(data, MAX_UNPACKED_BYTES)
    except zlib.error as error:
        raise ReplayError(f"not a replay ({error})") from None
    if not unpacker.eof:
        reason = "truncated" if len(unpacked) < MAX_UNPACKED_BYTES else f"larger than {MAX_UNPACKED_BYTES:,} bytes"
        raise ReplayError(f"not a replay ({reason})")
    if unpacker.unused_data:
        raise ReplayError(f"{len(unpacker.unused_data)} bytes after the end of the replay")
    return unpacked


def _read_header(line: bytes) -> dict[str, Any]:
    """The header, with keys of the right types."""
    try:
        header = parse_json(line)
    except ValueError as error:
        raise ReplayError(f"not a replay (header: {error})") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ReplayError("not a replay of echelon-env")
    if problem := version_problem(header.get("version"), VERSION):
        raise ReplayError(problem)
    for key, kind in _HEADER.items():
        if key not in header or not isinstance(header[key], kind) or isinstance(header[key], bool):
            raise ReplayError(f"{key}: unexpected value {shortened(header.get(key))}")
    for key in ("seed", "map_seed"):
        if not 0 <= header[key] < 2**64:
            raise ReplayError(f"{key}: expected an integer from 0 to 2**64 - 1, got {shortened(header[key])}")
    values = header["stamp"].values()
    if not all(isinstance(value, str) and len(value) <= 256 and value.isprintable() for value in values):
        raise ReplayError("stamp: expected short printable texts")
    if not re.fullmatch("[0-9a-f]{64}", header["map_hash"]):
        raise ReplayError(f"map_hash: expected 64 hexadecimal digits, got {shortened(header['map_hash'])}")
    return header
