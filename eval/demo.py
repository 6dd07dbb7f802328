"""The demonstration: three scripted agents with known answers, run, recorded and scored for real."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..builders.tasks_dataset.reading import load_instances
from ..toolkit.errors import InvalidInputError
from ..toolkit.records import Family, Instance, Level, Prompt
from ..toolkit.simulation.scene_pool import ScenePool
from .policies.registry import SCRIPTED
from .rollouts.executors.in_process import InProcess
from .rollouts.run import RunProgress, run_policy, with_references
from .scores.scores import Scores, score
from .selection import select_conflicts

SUITE = "libero_goal"
"""The suite whose every task the scripted agents complete."""

DEMO_LEVELS = (Level.L1, Level.L2)
INIT_STATE = 0
ROLLOUTS = "rollouts"
SCORES_FILE = "scores.json"
REPORT_FILE = "report.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """What a demonstration leaves.

    Attributes:
        scores: The scores.
        rollouts: Folder with one LeRobot dataset an agent.
        scores_file: The scores as JSON.
        report: The report.
        lesson: One sentence on what it shows.
    """

    scores: Scores
    rollouts: Path
    scores_file: Path
    report: Path
    lesson: str


def demo_cases(instances: Sequence[Instance]) -> tuple[Instance, ...]:
    """Two cases of each family, one at L1 and one at L2, each on another base task."""
    of_suite = [case for case in select_conflicts(instances, None, [Prompt.P0]) if case.suite == SUITE]
    chosen: list[Instance] = []
    for level in DEMO_LEVELS:
        for family in Family:
            fitting = [case for case in of_suite if case.family is family and case.level is level]
            used = {case.base_task for case in chosen}
            chosen.append(next((case for case in fitting if case.base_task not in used), fitting[0]))
    return tuple(chosen)


def demo_instances() -> tuple[Instance, ...]:
    """The cases of a demonstration with their references, as each agent runs them."""
    instances = load_instances()
    return with_references(demo_cases(instances), instances)


def demo_rollout_count() -> int:
    """How many rollouts a demonstration runs."""
    return len(SCRIPTED) * len(demo_instances())


def run_demo(out: Path, progress: Callable[[str, RunProgress], None] | None = None) -> Demo:
    """Run the demonstration.

    Args:
        out: A folder that does not exist, is empty, or holds an unfinished demonstration.
        progress: Called with the agent and its progress after each rollout.

    Raises:
        InvalidInputError: The folder holds something else, or cannot be written.
    """
    from .report import write_report

    if out.exists() and (not out.is_dir() or any(path.name != ROLLOUTS for path in out.iterdir())):
        raise InvalidInputError(f"{out}: exists and holds other files; choose another --out or remove it")
    rollouts, scores_file, report = out / ROLLOUTS, out / SCORES_FILE, out / REPORT_FILE
    _run_agents(rollouts, progress)
    scores = score(rollouts)
    scores.write(scores_file)
    write_report(scores, rollouts, report)
    return Demo(scores=scores, rollouts=rollouts, scores_file=scores_file, report=report, lesson=lesson(scores))


def _run_agents(rollouts: Path, progress: Callable[[str, RunProgress], None] | None) -> None:
    """Run each agent that an earlier call has not finished."""
    instances = demo_instances()
    executor = InProcess(ScenePool(capacity=len({(i.suite, i.base_task) for i in instances})))
    for name in SCRIPTED:
        if not (rollouts / name).exists():
            report = None if progress is None else partial(progress, name)
            run_policy(name, instances, rollouts, init_states=[INIT_STATE], executor=executor, progress=report)


def lesson(scores: Scores) -> str:
    """What the table shows, in one sentence made from its figures."""
    rows = {row["policy"]: row for row in scores.table("overall").to_pylist()}
    refuse, fumble = rows["refuse"], rows["fail_persist"]
    return (
        f"refuse completes {refuse['RGSR']:.0%} and fail_persist {fumble['RGSR']:.0%} of the reference goals under "
        f"conflict: the outcome cannot tell them apart, but the process can (TAR {refuse['TAR']:.0%} against "
        f"{fumble['TAR']:.0%}, AMS {refuse['AMS']:.0%} against {fumble['AMS']:.0%})."
    )
