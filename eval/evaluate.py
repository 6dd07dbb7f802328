"""Evaluation in one call: run a policy, record it, score it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ..builders.tasks_dataset.reading import load_instances
from ..toolkit.errors import InvalidInputError
from ..toolkit.records import Arm, Instance, VisualProbe
from .policies.interface import Policy
from .rollouts.executors.base import Executor
from .rollouts.run import RunProgress, run_policy, with_references
from .run_selection import FULL_INIT_STATES, RunSelection
from .scores.scores import Scores, score


def evaluate(
    policy: Policy | str,
    instances: Sequence[Instance] | None = None,
    *,
    out: Path | str,
    init_states: Sequence[int] = FULL_INIT_STATES,
    seeds: Sequence[int] = (0,),
    visual_probes: Sequence[VisualProbe] = (VisualProbe.V0,),
    executor: Executor | None = None,
    progress: Callable[[RunProgress], None] | None = None,
) -> Scores:
    """Run a policy on conflict instances and their references, and score the pairs.

    Args:
        policy: A policy, or its name (see ``load_policy``).
        instances: Conflict instances and controls; by default all released conflicts under P0 and P1, with five initial
            states the full evaluation of 14,530 rollouts. ``RunSelection(lite=True).instances()`` are those of the
            lite selection. References are added.
        out: Folder that receives the dataset of rollouts, named after the policy.
        init_states: LIBERO's numbers of the initial states.
        seeds: Seeds handed to the policy.
        visual_probes: Under which visual probes each is run; give V0 too to see what the others change.
        executor: Where rollouts are run, such as ``Processes(4)`` for a policy given by name; here by default.
        progress: Called with the state of the run after each rollout.

    Raises:
        InvalidInputError: The folder holds rollouts under other settings or an unfinished run of more, or cannot be
            written.
        PolicyError: The policy failed; call again to continue where it stopped.
    """
    if instances is None:
        chosen = RunSelection().instances()
    else:
        conflicts = [instance for instance in instances if instance.arm is not Arm.REFERENCE]
        chosen = with_references(conflicts, load_instances())
    run = run_policy(
        policy,
        chosen,
        Path(out),
        init_states=init_states,
        seeds=seeds,
        visual_probes=visual_probes,
        executor=executor,
        progress=progress,
    )
    if run.unfinished is not None:  # what another call has asked for
        raise InvalidInputError(str(run.unfinished))
    assert run.dataset is not None  # a failing policy raises here, so there is something to score
    return score(run.dataset)
