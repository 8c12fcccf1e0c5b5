"""The device that a policy runs on."""

from __future__ import annotations

import torch

from echelon_train.errors import DeviceError
from echelon_train.ppo import distributed


def resolve_device(name: str) -> torch.device:
    """The device of a name: ``cpu``, ``cuda``, ``cuda:<n>``, or ``auto`` (CUDA where there is one).

    In a distributed run ``cuda`` is the process's own CUDA device, or a shared one if this machine has fewer devices
    than processes. It becomes torch's current device.

    Raises DeviceError if there is no such device, and for the number of one in a distributed run.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise DeviceError(f"unknown device {name!r} (valid: auto, cpu, cuda, cuda:<number>)")
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise DeviceError("device 'cuda': this machine or this build of torch has no CUDA; use --device cpu")
        if distributed.world_size() > 1:
            if device.index is not None:
                raise DeviceError(f"device {name!r}: use 'cuda' in a distributed run (CUDA_VISIBLE_DEVICES chooses)")
            device = torch.device("cuda", distributed.rank() % torch.cuda.device_count())
        if device.index is not None and device.index >= torch.cuda.device_count():
            raise DeviceError(f"device {device}: this machine has {torch.cuda.device_count()} CUDA devices")
        if distributed.world_size() > 1:
            torch.cuda.set_device(device)
    return device
