"""Candidates of base tasks: proposals, each judged in every initial state.

The arrows of the pipeline: base task -> scene facts and base plan -> proposals -> checker -> candidates; ``selection``
makes cases of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import nullcontext

from ...toolkit.errors import InvalidInputError, NotFoundError, first_line
from ...toolkit.facts import SceneFacts
from ...toolkit.language.parsing.libero import parse_base_instruction
from ...toolkit.language.plan import Plan
from ...toolkit.language.plan_json import plan_to_json
from ...toolkit.language.render import render
from ...toolkit.language.vocabulary import Vocabulary, load_vocabulary
from ...toolkit.language.wording import plan_wording
from ...toolkit.operators import propose
from ...toolkit.premises import Violation, check, factors
from ...toolkit.processes import worker_processes
from ...toolkit.records import BaseTask, Family, Level
from .case import Candidate, TaskCandidates


def judge_candidates(
    tasks: Sequence[BaseTask],
    *,
    init_states: int = 50,
    workers: int = 1,
    fresh: bool = False,
    progress: Callable[[TaskCandidates], None] | None = None,
) -> list[TaskCandidates]:
    """The candidates of several base tasks, in the order of the tasks.

    A base instruction that grammar, vocabulary or checker cannot make sense of gives no candidates, but the reason.

    Args:
        tasks: Base tasks.
        init_states: In how many initial states each case must hold, from 0.
        workers: Processes; the result does not depend on it.
        fresh: Measure every scene anew, also where the cache has its facts.
        progress: Called with each base task's candidates when they are judged.
    """
    done = []
    judge = functools.partial(_candidates_or_reason, init_states=init_states, fresh=fresh)
    with worker_processes(workers) if workers > 1 else nullcontext() as pool:
        for result in map(judge, tasks) if pool is None else pool.map(judge, tasks):
            done.append(result)
            if progress:
                progress(result)
    return done


def _candidates_or_reason(task: BaseTask, *, init_states: int, fresh: bool) -> TaskCandidates:
    try:
        return task_candidates(task, init_states, fresh=fresh)
    except (InvalidInputError, NotFoundError) as error:
        return TaskCandidates(
            task=task, base_plan="", targets=(), proposals=0, candidates=(), skipped=first_line(error)
        )


def task_candidates(task: BaseTask, init_states: int = 50, *, fresh: bool = False) -> TaskCandidates:
    """Measure one base task's scene and confirm or reject every proposal for it.

    Raises:
        InvalidInputError: The base instruction cannot be read, or is not valid in every initial state.
        NotFoundError: The vocabulary lacks something in the scene.
    """
    from ...toolkit.simulation.observing.facts_cache import cached_facts
    from ...toolkit.simulation.observing.targets import goal_targets
    from ...toolkit.simulation.scene import Scene

    words = load_vocabulary()
    base = parse_base_instruction(task.instruction, words)
    scene = Scene(task)
    facts = cached_facts(scene, range(min(init_states, scene.initial_state_count)), fresh=fresh)
    wrong = check(base, facts, words)
    if wrong:
        raise InvalidInputError(
            f"the base instruction '{task.instruction}' of {task.task_id} is not valid: "
            f"{wrong[0].premise}, {wrong[0].observed}"
        )
    proposals, confirmed = 0, []
    for proposal in propose(base, facts, words):
        proposals += 1
        violations = check(proposal.plan, facts, words)
        level = conflict_level(len(proposal.plan.steps), violations, proposal.family)
        if level is None or proposal.compound != (level in (Level.L2, Level.L4)):
            continue  # a compound whose parts turn out to be one premise is not the case that its operator meant
        if level is Level.L4 and not _is_distributed(proposal.plan, facts, words):
            continue
        plan = plan_to_json(proposal.plan)
        confirmed.append(
            Candidate(
                plan=plan,
                instruction=render(proposal.plan, plan_wording(plan), words),
                operator=proposal.operator,
                family=proposal.family,
                level=level,
                factors=factors(violations),
            )
        )
    return TaskCandidates(
        task=task,
        base_plan=plan_to_json(base),
        targets=goal_targets(task),
        proposals=proposals,
        candidates=tuple(confirmed),
    )


def _is_distributed(plan: Plan, facts: SceneFacts, words: Vocabulary) -> bool:
    """Whether at least two steps violate something by themselves, so that the factors lie in different components."""
    return sum(bool(check(Plan(steps=(step,)), facts, words)) for step in plan.steps) > 1


def conflict_level(steps: int, violations: Sequence[Violation], designed: Family) -> Level | None:
    """The structural level of a conflict, or None where it is not a sound one.

    Sound means: at least one premise is violated, every one in every initial state, and all of the designed family.
    """
    if not violations or any(not violation.certain or violation.family is not designed for violation in violations):
        return None
    if len(violations) == 1:
        return Level.L1 if steps == 1 else Level.L3
    return Level.L2 if steps == 1 else Level.L4
