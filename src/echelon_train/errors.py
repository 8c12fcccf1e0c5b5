"""Errors whose messages tell users what to change."""

from echelon_env.storage.text import one_line


class TrainError(Exception):
    """Base class of the trainer's errors. The message is that of `one_line`."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class DeviceError(TrainError):
    """The device does not exist on this machine or in this build of torch."""


class RunFolderError(TrainError):
    """A run folder is not empty, or is not a run."""


class ProcessError(TrainError):
    """Another process of a run has failed; the message says why."""


class NonFiniteError(TrainError):
    """Training stopped because gradients were not finite."""
