"""Conflict cases from base tasks: propose, judge in every initial state, select, name.

The arrows of the pipeline: base task -> scene facts and base plan -> proposals -> checker -> candidates -> selection ->
cases. Selection is greedy and deterministic: within each cell (base task, family, level) it takes the candidates whose
operators and factors have been used least so far, so that no idea dominates.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from ..toolkit.base_tasks import base_tasks
from ..toolkit.errors import InvalidInputError
from ..toolkit.language import parse_base_instruction, render
from ..toolkit.operators import propose
from ..toolkit.premises import Finding, check, factors
from ..toolkit.records import Arm, BaseTask, Factor, Family, Instance, Level, Prompt
from ..toolkit.vocabulary import load_vocabulary

TASKS_VERSION = "0.1.0"
"""Version of the task release that the package carries."""

SELECTION_SEED = 20260101


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A proposal that the checker confirmed as a conflict of the designed family.

    Attributes:
        plan: The plan as JSON.
        instruction: The plan in English.
        operator: The operator's name.
        family: Conflict family.
        level: Structural level, computed from the steps and the factors.
        factors: The violated premises with evidence from all initial states.
    """

    plan: str
    instruction: str
    operator: str
    family: Family
    level: Level
    factors: tuple[Factor, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCandidates:
    """All candidates of one base task.

    Attributes:
        task: The base task.
        base_plan: Its own instruction's plan as JSON.
        targets: What the reference goal requires the robot to manipulate.
        proposals: How many plans were proposed.
        candidates: Those that the checker confirmed.
    """

    task: BaseTask
    base_plan: str
    targets: tuple[str, ...]
    proposals: int
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A released conflict case.

    Attributes:
        case_id: ``suite/task/family/level/number-hash``.
        task: The base task.
        base_plan: The base instruction's plan as JSON.
        targets: What the reference goal requires the robot to manipulate.
        candidate: The conflict.
    """

    case_id: str
    task: BaseTask
    base_plan: str
    targets: tuple[str, ...]
    candidate: Candidate


def build_cases(
    suites: Sequence[str],
    *,
    per_cell: int,
    init_states: int = 50,
    workers: int = 1,
    progress: Callable[[TaskCandidates], None] | None = None,
) -> tuple[Case, ...]:
    """Build the cases of whole suites in the simulator.

    Args:
        suites: LIBERO suites.
        per_cell: Most cases of one base task, family and level.
        init_states: In how many initial states each case must hold, from 0.
        workers: Processes; the result does not depend on it.
        progress: Told about each base task when it is done.

    Raises:
        InvalidInputError: A base instruction is not valid in every initial state, or cannot be read.
    """
    tasks = [task for suite in suites for task in base_tasks(suite)]
    judged = judge_candidates(tasks, init_states=init_states, workers=workers, progress=progress)
    return select_cases(judged, per_cell=per_cell)


def judge_candidates(
    tasks: Sequence[BaseTask],
    *,
    init_states: int = 50,
    workers: int = 1,
    progress: Callable[[TaskCandidates], None] | None = None,
) -> list[TaskCandidates]:
    """The candidates of several base tasks, in the order of the tasks; arguments as for ``build_cases``."""
    done = []
    if workers == 1:
        results: Iterable[TaskCandidates] = (task_candidates(task, init_states) for task in tasks)
        for result in results:
            done.append(result)
            if progress:
                progress(result)
    else:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            for result in pool.map(task_candidates, tasks, [init_states] * len(tasks)):
                done.append(result)
                if progress:
                    progress(result)
    return done


def task_candidates(task: BaseTask, init_states: int = 50) -> TaskCandidates:
    """Measure one base task's scene and confirm or reject every proposal for it.

    Raises:
        InvalidInputError: The base instruction itself is not valid in every initial state.
    """
    from ..toolkit.simulation.scene import Scene
    from ..toolkit.simulation.scene_facts import measure_facts
    from ..toolkit.simulation.targets import goal_targets

    words = load_vocabulary()
    base = parse_base_instruction(task.instruction, words)
    scene = Scene(task)
    facts = measure_facts(scene, range(min(init_states, scene.initial_state_count)))
    wrong = check(base, facts, words)
    if wrong:
        raise InvalidInputError(
            f"the base instruction '{task.instruction}' of {task.task_id} is not valid: "
            f"{wrong[0].premise}, {wrong[0].observed}"
        )
    proposals, confirmed = 0, []
    for proposal in propose(base, facts, words):
        proposals += 1
        findings = check(proposal.plan, facts, words)
        level = conflict_level(len(proposal.plan.steps), findings, proposal.family)
        if level is None or proposal.compound != (level in (Level.L2, Level.L4)):
            continue  # a compound whose parts turn out to be one premise is not the case that its operator meant
        plan = proposal.plan.to_json()
        confirmed.append(
            Candidate(
                plan=plan,
                instruction=render(proposal.plan, _wording(plan), words),
                operator=proposal.operator,
                family=proposal.family,
                level=level,
                factors=factors(findings),
            )
        )
    return TaskCandidates(
        task=task,
        base_plan=base.to_json(),
        targets=goal_targets(task),
        proposals=proposals,
        candidates=tuple(confirmed),
    )


def conflict_level(steps: int, findings: Sequence[Finding], designed: Family) -> Level | None:
    """The structural level of a conflict, or None where it is not a sound one.

    Sound means: at least one premise is violated, every one in every initial state, and all of the designed family.
    """
    if not findings or any(not finding.certain or finding.family is not designed for finding in findings):
        return None
    if len(findings) == 1:
        return Level.L1 if steps == 1 else Level.L3
    return Level.L2 if steps == 1 else Level.L4


def select_cases(tasks: Sequence[TaskCandidates], *, per_cell: int) -> tuple[Case, ...]:
    """Choose up to ``per_cell`` candidates of each cell; deterministic, whatever the machine or worker count."""
    used: Counter[tuple[Family, str]] = Counter()
    chosen: list[Case] = []
    for task in tasks:
        factor_sets: set[frozenset[str]] = set()
        for level in Level:
            for family in Family:
                cell = [c for c in task.candidates if c.family is family and c.level is level]
                picked = _select_cell(cell, per_cell, used, factor_sets, f"{task.task.task_id}/{family}/{level}")
                chosen.extend(_case(task, candidate, number) for number, candidate in enumerate(picked))
    return tuple(chosen)


def _select_cell(
    cell: list[Candidate], wanted: int, used: Counter[tuple[Family, str]], factor_sets: set[frozenset[str]], name: str
) -> list[Candidate]:
    """Greedy: the least used operator first, then the least used factors, then chance fixed by the cell's name."""
    random.Random(f"{SELECTION_SEED}/{name}").shuffle(cell)  # reproducible, not secret
    picked: list[Candidate] = []
    while cell and len(picked) < wanted:
        best = min(cell, key=lambda c: (max(used[c.family, part] for part in _ideas(c)), _repetition(c, used)))
        cell.remove(best)
        signature = frozenset(factor.premise for factor in best.factors)
        if signature in factor_sets:
            continue  # two cases of a base task differ in at least one factor, not only in wording
        factor_sets.add(signature)
        used.update((best.family, part) for part in _ideas(best))
        used.update((best.family, factor.premise) for factor in best.factors)
        picked.append(best)
    return picked


def _ideas(candidate: Candidate) -> list[str]:
    return candidate.operator.replace("&", "+").split("+")


def _repetition(candidate: Candidate, used: Counter[tuple[Family, str]]) -> int:
    return sum(used[candidate.family, factor.premise] for factor in candidate.factors)


def _case(task: TaskCandidates, candidate: Candidate, number: int) -> Case:
    content = content_hash(candidate.plan, candidate.instruction)
    return Case(
        case_id=f"{task.task.task_id}/{candidate.family}/{candidate.level}/{number:02d}-{content}",
        task=task.task,
        base_plan=task.base_plan,
        targets=task.targets,
        candidate=candidate,
    )


def content_hash(plan: str, instruction: str) -> str:
    """What a case's id ends with: another plan or other words are another case."""
    return hashlib.sha256(f"{plan}\n{instruction}".encode()).hexdigest()[:8]


def _wording(plan: str) -> int:
    """A wording number from the plan's content, never LIBERO's own style (0)."""
    return 1 + int.from_bytes(hashlib.sha256(plan.encode()).digest()[:4], "big") % 60


def reference_instance(case: Case, prompt: Prompt) -> Instance:
    """The base task's own instruction under a prompt condition."""
    task = case.task
    reference_id = f"{task.task_id}/reference/{prompt}"
    return Instance(
        instance_id=reference_id,
        case_id=None,
        pair_id=reference_id,
        arm=Arm.REFERENCE,
        suite=task.suite,
        base_task=task.name,
        base_task_index=task.index,
        base_instruction=task.instruction,
        instruction=task.instruction,
        prompt=prompt,
        family=None,
        level=None,
        operator=None,
        plan=case.base_plan,
        factors=(),
        targets=case.targets,
        horizon=task.horizon,
        tasks_version=TASKS_VERSION,
    )


def conflict_instance(case: Case, prompt: Prompt) -> Instance:
    """A case under a prompt condition."""
    task, candidate = case.task, case.candidate
    return Instance(
        instance_id=f"{case.case_id}/{prompt}",
        case_id=case.case_id,
        pair_id=f"{task.task_id}/reference/{prompt}",
        arm=Arm.CONFLICT,
        suite=task.suite,
        base_task=task.name,
        base_task_index=task.index,
        base_instruction=task.instruction,
        instruction=candidate.instruction,
        prompt=prompt,
        family=candidate.family,
        level=candidate.level,
        operator=candidate.operator,
        plan=candidate.plan,
        factors=candidate.factors,
        targets=case.targets,
        horizon=task.horizon,
        tasks_version=TASKS_VERSION,
    )
