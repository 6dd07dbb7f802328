"""Evaluation in one call: run a policy, record it, score it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ..builders.tasks_dataset import load_instances
from ..toolkit.records import Arm, Instance, Prompt
from .policies.policy import Policy
from .policies.registry import load_policy
from .run import RunProgress, run_policy, with_references
from .scores import Scores, score


def evaluate(
    policy: Policy | str,
    instances: Sequence[Instance] | None = None,
    *,
    out: Path | str,
    init_states: Sequence[int] = range(5),
    seed: int = 0,
    progress: Callable[[RunProgress], None] | None = None,
) -> Scores:
    """Run a policy on conflict instances and their references, and score the pairs.

    Args:
        policy: A policy, or its name (see ``load_policy``).
        instances: Conflict instances; by default all released ones under P0. References are added.
        out: Folder that receives the data set of rollouts, named after the policy.
        init_states: LIBERO's numbers of the initial states.
        seed: Seed handed to the policy.
        progress: Told after each rollout.

    Raises:
        InvalidInputError: The folder holds another run, or cannot be written.
        PolicyError: The policy failed; call again to continue where it stopped.
    """
    everything = load_instances()
    conflicts = [
        instance
        for instance in (everything if instances is None else instances)
        if instance.arm is Arm.CONFLICT and (instances is not None or instance.prompt is Prompt.P0)
    ]
    runner = load_policy(policy) if isinstance(policy, str) else policy
    chosen = with_references(conflicts, everything)
    return score(run_policy(runner, chosen, Path(out), init_states=init_states, seed=seed, progress=progress))
