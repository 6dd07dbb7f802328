"""Rollouts in this process, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....toolkit.simulation.scene_pool import ScenePool
from ...policies.interface import Policy
from ..jobs import Job, Outcome
from .base import PAUSE_S, Patience, PolicySource, Take, raise_failure, run_job, take_all


class InProcess:
    """Runs jobs one after the other in this process.

    Args:
        scenes: Warm scenes to use; a pool of its own by default.
        answer_limit_s: Longest time that the policy may take for an answer, in s; None for no limit.
        pause_s: Pause before a rollout is tried again in which the policy did not answer, in s.
    """

    def __init__(
        self, scenes: ScenePool | None = None, *, answer_limit_s: float | None = None, pause_s: float = PAUSE_S
    ) -> None:
        self._scenes = scenes or ScenePool()
        self._patience = Patience(answer_limit_s=answer_limit_s, pause_s=pause_s)

    def run(
        self, policy: Policy | str, jobs: Sequence[Job], *, stop_on_failure: bool, take: Take = take_all
    ) -> Iterator[Outcome]:
        """Run the jobs; see ``Executor.run``."""
        source = PolicySource(policy, self._patience)
        for job in filter(take, jobs):
            outcome = run_job(source, job, self._scenes)
            if stop_on_failure:
                raise_failure(outcome)
            yield outcome
