"""Evaluation in one call: run a policy, record it, score it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ..builders.cases.instances import under_prompts
from ..builders.tasks_dataset.reading import load_instances
from ..toolkit.errors import InvalidInputError
from ..toolkit.prompts import PromptCondition
from ..toolkit.prompts_file import read_prompts_file
from ..toolkit.records import Arm, Instance, VisualProbe
from .policies.interface import Policy
from .rollouts.executors.base import Executor
from .rollouts.run import RunProgress, run_policy, with_references
from .run_selection import FULL_INIT_STATES, RunSelection
from .scores.scores import Scores, score
from .selection import choose_prompts


def evaluate(
    policy: Policy | str,
    instances: Sequence[Instance] | None = None,
    *,
    out: Path | str,
    prompts: Sequence[str] | None = None,
    prompts_file: Path | str | None = None,
    init_states: Sequence[int] = FULL_INIT_STATES,
    seeds: Sequence[int] = (0,),
    visual_probes: Sequence[VisualProbe] = (VisualProbe.V0,),
    executor: Executor | None = None,
    progress: Callable[[RunProgress], None] | None = None,
) -> Scores:
    """Run a policy on conflict instances and their references, and score them.

    Args:
        policy: A policy, or its name (see ``load_policy``).
        instances: Conflict instances, controls and references; by default all released conflicts, under P0 and P1 with
            five initial states the full evaluation of 14,530 rollouts. ``RunSelection(lite=True).instances()`` are
            those of the lite selection. Missing references are added.
        out: Folder that receives the dataset of rollouts, named after the policy.
        prompts: Names of prompt conditions, such as ``("P0", "placebo")``. By default those of the given instances
            (P0 and P1 where none are given) and all of ``prompts_file``.
        prompts_file: Wordings of your own, see ``read_prompts_file``.
        init_states: LIBERO's numbers of the initial states.
        seeds: Seeds handed to the policy.
        visual_probes: Under which visual probes each is run; give V0 too to see what the others change.
        executor: Where rollouts are run, such as ``Processes(4)`` for a policy given by name; here by default.
        progress: Called with the state of the run after each rollout.

    Raises:
        InvalidInputError: There are no instances; the folder holds rollouts under other settings or an unfinished run
            of more, or cannot be written; or the file of prompts cannot be used.
        NotFoundError: There is no such prompt condition.
        PolicyError: The policy failed; call again to continue where it stopped.
    """
    own = read_prompts_file(prompts_file) if prompts_file else ()
    if instances is None:
        chosen = RunSelection(prompts=prompts, own_prompts=own).instances()
    else:
        chosen = _with_references_under(instances, prompts, own)
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


def _with_references_under(
    instances: Sequence[Instance], prompts: Sequence[str] | None, own: Sequence[PromptCondition]
) -> tuple[Instance, ...]:
    """The instances under these prompt conditions, by default their own and the user's, with their references.

    Given references are run as they are, those that pair with nothing here too.
    """
    if not instances:
        raise InvalidInputError("instances is empty, so there is nothing to run: leave it out to run all of them")
    if prompts is None:
        prompts = [*dict.fromkeys(instance.prompt for instance in instances), *(condition.name for condition in own)]
    conditions = choose_prompts(prompts, own)
    given = under_prompts(instances, conditions)
    references = {i.instance_id: i for i in given if i.arm is Arm.REFERENCE}
    others = [i for i in given if i.arm is not Arm.REFERENCE]
    paired = with_references(others, (*under_prompts(load_instances(), conditions), *references.values()))
    for instance in paired:
        references.pop(instance.instance_id, None)
    return (*paired, *references.values())
