"""Scoring on a Ray cluster: each group of policies is read and measured on whichever machine is free."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...toolkit.errors import DatasetError, InvalidInputError, MissingExtraError, first_line
from .parts import PartScores, score_folders

HOST_PORT = re.compile(r"(?:ray://)?(?P<host>[^:/]+):(?P<port>\d+)")

CONNECT_S = 5.0
"""How long a cluster's machine may take to answer."""


def score_on_ray(
    groups: Sequence[Sequence[Path]], address: str, *, supplementary: bool, partial: bool
) -> Iterator[PartScores]:
    """Measure groups of datasets on a cluster; see ``score_folders``.

    Args:
        groups: From ``folders_by_policy``; every machine of the cluster must see these folders.
        address: ``auto`` for the cluster that this machine belongs to, ``local`` for one on this machine alone,
            ``HOST:PORT``, or ``ray://HOST:PORT`` for a client connection.
        supplementary: As for ``score_folders``.
        partial: As for ``score_folders``.

    Yields:
        One a group, as they finish; only what is left after measuring travels.

    Raises:
        MissingExtraError: Ray is not installed.
        InvalidInputError: There is no cluster at that address.
        DatasetError: As for ``score_folders``.
    """
    ray = _connect(address)
    try:
        remote = ray.remote(num_cpus=1)(score_folders)
        absolute = [tuple(folder.resolve() for folder in folders) for folders in groups]
        waiting = [remote.remote(folders, supplementary=supplementary, partial=partial) for folders in absolute]
        while waiting:
            done, waiting = ray.wait(waiting)
            yield _result(ray, done[0])
    finally:
        ray.shutdown()


def _connect(address: str) -> Any:
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("scoring on a cluster", "ray", "ray") from error
    _check_reachable(address)
    try:
        ray.init(address=address, logging_level="ERROR", log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InvalidInputError(
            f"no Ray cluster at '{address}' ({first_line(error)}): start one with  ray start --head"
        ) from error
    return ray


def _check_reachable(address: str) -> None:
    """Ray itself waits for minutes for a cluster that is not there."""
    found = HOST_PORT.fullmatch(address)
    if found is None:
        return
    try:
        socket.create_connection((found["host"], int(found["port"])), timeout=CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise InvalidInputError(f"no Ray cluster at '{address}' ({error}): start one with  ray start --head") from error


def _result(ray: Any, reference: Any) -> PartScores:
    try:
        part: PartScores = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        # What a task raises arrives wrapped; a defect of the dataset is to read the same as without a cluster.
        if isinstance(error.cause, DatasetError):
            raise error.cause from None
        raise
    return part
