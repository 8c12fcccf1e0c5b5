"""The connection to a cluster of Ray, https://ray.io, of the extra ``[ray]``."""

from __future__ import annotations

import logging
import os
import re
import socket
from typing import Any, Final

from echelon_train.errors import ClusterError

REACH_SECONDS: Final = 10.0
"""Time for a cluster to accept a connection."""


def connect(address: str | None, namespace: str | None = None) -> tuple[Any, bool]:
    """The module `ray`, connected to a cluster, and whether this call has connected it.

    Parameters
    ----------
    address
        Of the cluster, as `ray.init` takes it; not used if this process is connected already. By default that of the
        environment variable ``RAY_ADDRESS``; without the variable, Ray starts a local cluster.
    namespace
        Ray's namespace of named actors.

    Raises
    ------
    ClusterError
        If Ray is not installed, or the cluster cannot be reached.
    """
    try:
        import ray
    except ImportError as error:
        raise ClusterError("Ray is not installed: pip install 'echelon-env[ray]'") from error
    if ray.is_initialized():
        return ray, False
    check_reachable(address or os.environ.get("RAY_ADDRESS", ""))
    try:
        ray.init(address=address, namespace=namespace, log_to_driver=False, logging_level=logging.WARNING)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ClusterError(f"Ray: cannot connect to {address or 'a cluster'}: {error}") from error
    return ray, True


def check_reachable(address: str) -> None:
    """Raise ClusterError if nothing listens at an address ``HOST:PORT``: Ray would try for minutes."""
    found = re.fullmatch(r"(?:ray://)?([^:/]+):(\d{1,5})", address)
    if found is None:
        return
    try:
        socket.create_connection((found[1], int(found[2])), REACH_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(f"Ray: no cluster answers at {address}: {error}") from error
