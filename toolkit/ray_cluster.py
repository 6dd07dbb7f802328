"""A connection to a Ray cluster, for whatever runs on one."""

from __future__ import annotations

import contextlib
import importlib.util
import socket
from collections.abc import Iterator
from typing import Any

from .errors import InvalidInputError, MissingExtraError, first_line

LOCAL = "local"
"""Address that starts a cluster of this machine's cores for as long as the connection lasts."""

CONNECT_S = 10.0
"""How long a cluster's machine may take to answer, in s."""


def require_ray(what: str) -> None:
    """Make sure that Ray is installed.

    Args:
        what: What the caller does, as a noun phrase, such as "scoring on a cluster".

    Raises:
        MissingExtraError: It is not.
    """
    if importlib.util.find_spec("ray") is None:
        raise MissingExtraError(what, "ray", "ray")


@contextlib.contextmanager
def ray_cluster(address: str) -> Iterator[Any]:
    """The package Ray, connected to a cluster; a connection that the process has already is used, and stays.

    Args:
        address: ``auto`` for the cluster that this machine belongs to, ``local`` for one on this machine alone,
            ``HOST:PORT``, or ``ray://HOST:PORT`` for a client connection.

    Raises:
        InvalidInputError: There is no cluster at that address.
    """
    import ray

    if ray.is_initialized():
        yield ray
        return
    _check_reachable(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="error")
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise _no_cluster(address, first_line(error)) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Ray itself goes on trying for minutes where no cluster answers."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdigit():
        return  # "local" and "auto" name no host
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address, getattr(error, "strerror", None) or first_line(error)) from error


def _no_cluster(address: str, reason: str) -> InvalidInputError:
    return InvalidInputError(
        f"no Ray cluster at '{address}' ({reason}); start one with  ray start --head  or use --ray {LOCAL}"
    )
