"""Changes to a checkpoint's files that its checksums do not notice."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import safetensors.torch

from echelon_env.networks.checkpoint import JSON_FILE, WEIGHTS_FILE


def edit(folder: Path, **changes: object) -> None:
    """Change keys of a checkpoint's JSON."""
    (folder / JSON_FILE).write_text(json.dumps({**json.loads((folder / JSON_FILE).read_text()), **changes}))


def remove(folder: Path, key: str) -> None:
    """Remove a key of a checkpoint's JSON."""
    document = json.loads((folder / JSON_FILE).read_text())
    del document[key]
    (folder / JSON_FILE).write_text(json.dumps(document))


def put_weights(folder: Path, data: bytes) -> None:
    """Replace the weights, with their checksum in the JSON."""
    (folder / WEIGHTS_FILE).write_bytes(data)
    edit(folder, weights_sha256=hashlib.sha256(data).hexdigest(), weights_bytes=len(data))


def change_weights(folder: Path, change: Callable) -> None:
    """Apply a function to the dict of the weights."""
    weights = safetensors.torch.load_file(folder / WEIGHTS_FILE)
    change(weights)
    put_weights(folder, safetensors.torch.save(weights))
