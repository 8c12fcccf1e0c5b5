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

    The address is as `ray.init` takes it, and not used if this process is connected already. By default it is that of
    the environment variable ``RAY_ADDRESS``, else of the cluster on this machine; without one, Ray starts one. Raises
    ClusterError if Ray is not installed, or the cluster cannot be reached.
    """
    try:
        import ray
    except ImportError as error:
        raise ClusterError("Ray is not installed: pip install 'echelon-env[ray]'") from error
    if ray.is_initialized():
        return ray, False
    address = address or os.environ.get("RAY_ADDRESS") or _cluster_here(ray)
    check_reachable(address or "")
    try:
        ray.init(address=address, namespace=namespace, log_to_driver=False, logging_level=logging.WARNING)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ClusterError(f"Ray: cannot connect to {address or 'a cluster'}: {error}") from error
    return ray, True


def _cluster_here(ray: Any) -> str | None:
    """The address of the cluster that was last started on this machine; ``local``, for a new one, if it is gone.

    Ray keeps the address in a file, and would try for minutes to reach a cluster that has been killed.
    """
    try:
        last: str = ray._private.utils.read_ray_address() or ""
    except AttributeError:  # in another version of Ray
        return None
    try:
        check_reachable(last)
    except ClusterError:
        return "local"
    return last or "local"


def check_reachable(address: str) -> None:
    """Raise ClusterError if nothing listens at an address ``HOST:PORT``: Ray would try for minutes."""
    found = re.fullmatch(r"(?:ray://)?([^:/]+):(\d{1,5})", address)
    if found is None:
        return
    try:
        socket.create_connection((found[1], int(found[2])), REACH_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(f"Ray: no cluster answers at {address}: {error}") from error
