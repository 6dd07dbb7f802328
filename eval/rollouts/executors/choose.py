"""The executor for what a user asks for: this process, several, or a Ray cluster."""

from __future__ import annotations

from ....toolkit.errors import InvalidInputError
from .base import PAUSE_S, Executor
from .in_process import InProcess
from .processes import Processes
from .ray import RayCluster


def choose_executor(
    workers: int, ray: str | None, *, answer_limit_s: float | None = None, pause_s: float = PAUSE_S
) -> Executor:
    """The executor for what a user asks for.

    Args:
        workers: Processes on this machine.
        ray: Address of a Ray cluster to use instead, or None.
        answer_limit_s: Longest time that the policy may take for an answer, in s; None for no limit.
        pause_s: Pause before a rollout is tried again in which the policy did not answer, in s.

    Raises:
        InvalidInputError: Both several workers and a cluster are asked for, or no worker at all.
        MissingExtraError: A cluster is asked for and Ray is not installed.
    """
    if ray is None:
        if workers == 1:
            return InProcess(answer_limit_s=answer_limit_s, pause_s=pause_s)
        return Processes(workers, answer_limit_s=answer_limit_s, pause_s=pause_s)
    if workers != 1:
        raise InvalidInputError(
            "--workers and --ray exclude each other: on a cluster, Ray decides how many run at once"
        )
    return RayCluster(ray, answer_limit_s=answer_limit_s, pause_s=pause_s)
