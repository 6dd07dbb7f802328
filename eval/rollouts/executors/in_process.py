"""Rollouts in this process, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....toolkit.simulation.scene_pool import ScenePool
from ...policies.interface import Policy
from ..jobs import Job, Outcome
from .base import PolicySource, raise_failure, run_job


class InProcess:
    """Runs jobs one after the other in this process.

    Args:
        scenes: Warm scenes to use; a pool of its own by default.
        answer_limit_s: Longest time that the policy may take for an answer, in s; None for no limit.
    """

    def __init__(self, scenes: ScenePool | None = None, *, answer_limit_s: float | None = None) -> None:
        self._scenes = scenes or ScenePool()
        self._answer_limit_s = answer_limit_s

    def run(self, policy: Policy | str, jobs: Sequence[Job], *, stop_on_failure: bool) -> Iterator[Outcome]:
        """Run the jobs; see ``Executor.run``."""
        source = PolicySource(policy, self._answer_limit_s)
        for job in jobs:
            outcome = run_job(source.policy(), job, self._scenes)
            if stop_on_failure:
                raise_failure(outcome)
            yield outcome
