"""What can go wrong through no fault of the code: each with a message that a user can act on."""


class TrainError(Exception):
    """A request that cannot be met; the message says why."""


class CheckpointError(TrainError):
    """A checkpoint that is missing, foreign, damaged or made for another version."""


class DeviceError(TrainError):
    """A device that this machine or this build of torch does not have."""


class RunFolderError(TrainError):
    """A run folder that cannot be used: it holds something already, or is no run."""


class NonFiniteError(TrainError):
    """Training has gone wrong: gradients are not finite."""
