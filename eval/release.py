"""The release of recorded rollouts: the scripted agents over the benchmark, and the small part that is packaged.

Scripted agents have known answers, so their rollouts show what the measures make of them; no model's are among them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from ..builders.rollouts.packing import pack_dataset
from ..builders.tasks_dataset.reading import load_instances, load_lite_cases
from ..toolkit.atomic_files import write_atomic
from ..toolkit.errors import InvalidInputError, NotFoundError, choices
from ..toolkit.libero.base_tasks import base_task
from ..toolkit.records import Arm, Family, Instance, Level, Prompt
from .policies.registry import SCRIPTED
from .policies.scripted.agents import AGENTS
from .policies.scripted.goals import check_goal
from .recordings.reading import read_rollouts
from .recordings.video_files import RENDERED, video_path
from .rollouts.executors.base import Executor
from .rollouts.run import RunProgress, run_policy, with_references
from .selection import select_conflicts
from .submissions.results import SCRIPTED_AGENT
from .submissions.results_file import RESULTS_FOLDER, VERIFIED_FOLDER, read_results, result_json, verification_json
from .submissions.submit import SubmissionSource, check_submission
from .submissions.verify import fresh_seed, verification_of, verify_submission

INIT_STATES = (0,)
"""Initial states that a release has unless others are asked for."""

CAMERA = "agentview"
"""View of the videos."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePlan:
    """What a release consists of.

    Attributes:
        agents: Names of scripted agents.
        instances: Conflict instances with their references, for each agent.
        init_states: Initial states, for each instance.
        left_out: Base tasks for which the scripted agents have no skill, and why.
    """

    agents: tuple[str, ...] = SCRIPTED
    instances: tuple[Instance, ...]
    init_states: tuple[int, ...] = INIT_STATES
    left_out: tuple[str, ...]

    @property
    def rollouts(self) -> int:
        """Rollouts of all agents together."""
        return len(self.agents) * len(self.instances) * len(self.init_states)


def plan_rollouts(
    instances: Sequence[Instance],
    per_cell: int | None = None,
    agents: Sequence[str] = SCRIPTED,
    *,
    init_states: Sequence[int] = INIT_STATES,
    lite: Collection[str] = (),
) -> ReleasePlan:
    """The cases under P0 that the scripted agents are asked: all, the lite selection, or some of each family and level.

    Args:
        instances: The task release.
        per_cell: Most cases of a family and level, chosen from all, spread over suites and base tasks.
        agents: Names of scripted agents.
        init_states: Initial states, for each instance.
        lite: Ids of the cases to take; all where there are none.

    Raises:
        NotFoundError: No such scripted agent.
    """
    for agent in agents:
        if agent not in AGENTS:
            raise NotFoundError(f"no scripted agent '{agent}': {choices(agent, sorted(AGENTS))}")
    conflicts = select_conflicts(instances, None, [Prompt.P0])
    left_out = {}
    for suite, name in dict.fromkeys((i.suite, i.base_task) for i in conflicts):
        try:
            check_goal(base_task(suite, name))
        except InvalidInputError as error:
            left_out[suite, name] = str(error)
    able = [i for i in conflicts if (i.suite, i.base_task) not in left_out]
    marked = [i for i in able if i.case_id in lite]
    chosen = sample_cells(able, per_cell) if per_cell is not None else marked or able
    return ReleasePlan(
        agents=tuple(dict.fromkeys(agents)),
        instances=with_references(chosen, instances),
        init_states=tuple(init_states),
        left_out=tuple(left_out.values()),
    )


def sample_cells(conflicts: Sequence[Instance], per_cell: int) -> list[Instance]:
    """Cases of each family and level, from the suites and base tasks used least so far; no chance is involved."""
    used: Counter[tuple[str, str]] = Counter()
    chosen: list[Instance] = []
    for family in Family:
        for level in Level:
            fitting = [i for i in conflicts if i.family is family and i.level is level]
            for _ in range(min(per_cell, len(fitting))):
                best = min(fitting, key=lambda i: (sum(used[place] for place in _places(i)), i.instance_id))
                fitting.remove(best)
                chosen.append(best)
                used.update(_places(best))
    return chosen


def _places(instance: Instance) -> tuple[tuple[str, str], ...]:
    """What a sample is spread over: base tasks, and suites within each family and level."""
    suite = instance.suite
    return (suite, instance.base_task), (suite, str(instance.family)), (suite, str(instance.level))


def build_rollouts(
    out: Path,
    plan: ReleasePlan,
    executor: Executor,
    *,
    compact: bool = False,
    progress: Callable[[str, RunProgress], None] | None = None,
) -> None:
    """Record a release: ``out/<agent>`` for each scripted agent, and ``out/results`` for the leaderboard.

    Args:
        out: Folder; called again after an interruption, it goes on.
        plan: See ``plan_rollouts``.
        executor: Where rollouts are run.
        compact: Leave the simulator's states out and pack the frames tightly.
        progress: Called with the agent and its progress: after each rollout, and once for an agent that is finished.

    Raises:
        InvalidInputError: The folder holds other rollouts, or cannot be written.
    """
    everything, lite = load_instances(), load_lite_cases()
    for agent in plan.agents:
        report = None if progress is None else partial(progress, agent)
        if not (out / agent).exists():
            run_policy(agent, plan.instances, out, init_states=plan.init_states, executor=executor, progress=report)
        elif report:
            rollouts = len(plan.instances) * len(plan.init_states)
            report(RunProgress(done=rollouts, total=rollouts, job=None))
    for agent in plan.agents:
        if compact:
            pack_dataset(out / agent)
        source = SubmissionSource(folder=out / agent, repo_id="", commit="")
        result = check_submission(source, everything, kind=SCRIPTED_AGENT, lite=lite).result
        write_atomic(out / RESULTS_FOLDER / result.file_name, result_json(result))


def verify_rollouts(
    out: Path, plan: ReleasePlan, sample: int, progress: Callable[[str], None] | None = None
) -> tuple[str, ...]:
    """Verify each agent's rollouts and mark its result for the leaderboard, in ``out/verified``.

    Args:
        out: From ``build_rollouts``.
        plan: What was to be recorded.
        sample: How many rollouts of each agent are executed again.
        progress: Called with a line on what was just done.

    Returns:
        What is wrong, with the agent's name; empty where all is well.
    """
    everything, lite = load_instances(), load_lite_cases()
    findings: list[str] = []
    for entry in read_results(out):
        result, file = entry.result, out / RESULTS_FOLDER / f"{entry.name}.json"
        report = verify_submission(
            out / result.policy_name,
            everything,
            sample=sample,
            seed=fresh_seed(),
            cases={instance.case_id for instance in plan.instances if instance.case_id is not None},
            lite=lite,
            claimed=result,
            progress=progress,
        )
        write_atomic(out / VERIFIED_FOLDER / file.name, verification_json(verification_of(report, file)))
        findings.extend(f"{result.policy_name}: {finding.message}" for finding in report.findings)
    return tuple(findings)


def render_pairs(
    out: Path, plan: ReleasePlan, count: int, progress: Callable[[str], None] | None = None
) -> tuple[Path, ...]:
    """Render pairs of each agent, spread over the cases, into its dataset, except videos that are there already.

    Args:
        out: From ``build_rollouts``, with the simulator's states.
        plan: What was recorded.
        count: How many conflict rollouts of each agent; with each comes its reference.
        progress: Called with each rollout's id when its video is there.
    """
    from .rollouts.render import render_rollouts

    files = []
    for agent in plan.agents:
        for rollout_id in _spread_pairs(out / agent, count):
            file = video_path(out / agent / RENDERED, rollout_id, CAMERA)
            if not file.exists():
                render_rollouts(out / agent, file.parent, rollout_ids=[rollout_id], camera=CAMERA)
            files.append(file)
            if progress:
                progress(rollout_id)
    return tuple(files)


def _spread_pairs(dataset: Path, count: int) -> tuple[str, ...]:
    """Ids of conflict rollouts from first to last at equal distances, and of their references."""
    episodes = read_rollouts(dataset).records()
    conflicts = [episode for episode in episodes if episode.arm is Arm.CONFLICT]
    chosen = [conflicts[int(at)] for at in np.linspace(0, len(conflicts) - 1, min(count, len(conflicts)))]
    tasks = {(episode.suite, episode.base_task) for episode in chosen}
    references = [e for e in episodes if e.arm is Arm.REFERENCE and (e.suite, e.base_task) in tasks]
    return tuple(episode.rollout_id for episode in (*chosen, *references))
