"""The demonstration: three scripted agents with known answers, run, recorded and scored for real."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..builders.tasks_dataset.reading import load_instances
from ..toolkit.errors import InvalidInputError
from ..toolkit.records import Arm, Family, Instance, Level, Prompt
from ..toolkit.simulation.scene_pool import ScenePool
from .policies.registry import SCRIPTED
from .rollouts.executors.in_process import InProcess
from .rollouts.run import RunProgress, run_policy, with_references
from .scores.scores import Scores, score

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
    chosen: list[Instance] = []
    used: set[str] = set()
    for level in DEMO_LEVELS:
        for family in Family:
            fitting = [
                instance
                for instance in instances
                if instance.arm is Arm.CONFLICT
                and instance.prompt is Prompt.P0
                and instance.suite == SUITE
                and instance.family is family
                and instance.level is level
            ]
            fresh = [instance for instance in fitting if instance.base_task not in used]
            case = (fresh or fitting)[0]
            used.add(case.base_task)
            chosen.append(case)
    return tuple(chosen)


def demo_rollout_count() -> int:
    """How many rollouts a demonstration runs."""
    instances = load_instances()
    return len(SCRIPTED) * len(with_references(demo_cases(instances), instances))


def run_demo(out: Path, progress: Callable[[str, RunProgress], None] | None = None) -> Demo:
    """Run the demonstration.

    Args:
        out: A folder that does not exist, is empty, or holds an unfinished demonstration.
        progress: Told the agent and its progress after each rollout.

    Raises:
        InvalidInputError: The folder holds something else, or cannot be written.
    """
    from .report import write_report

    strangers = sorted(path.name for path in out.iterdir()) if out.is_dir() else []
    if out.exists() and (not out.is_dir() or set(strangers) - {ROLLOUTS}):
        raise InvalidInputError(f"{out}: exists and holds other files; choose another --out or remove it")
    instances = load_instances()
    chosen = with_references(demo_cases(instances), instances)
    executor = InProcess(ScenePool(capacity=len({(i.suite, i.base_task) for i in chosen})))
    for name in SCRIPTED:
        if (out / ROLLOUTS / name).exists():
            continue  # finished before an interruption

        def report_progress(state: RunProgress, name: str = name) -> None:
            if progress:
                progress(name, state)

        run_policy(name, chosen, out / ROLLOUTS, init_states=[INIT_STATE], executor=executor, progress=report_progress)
    scores = score(out / ROLLOUTS)
    scores.write(out / SCORES_FILE)
    write_report(scores, out / ROLLOUTS, out / REPORT_FILE)
    return Demo(
        scores=scores,
        rollouts=out / ROLLOUTS,
        scores_file=out / SCORES_FILE,
        report=out / REPORT_FILE,
        lesson=lesson(scores),
    )


def lesson(scores: Scores) -> str:
    """What the table shows, in one sentence made from its figures."""
    rows = {row["policy"]: row for row in scores.table("overall").to_pylist()}
    refuse, fumble = rows["refuse"], rows["fail_persist"]
    return (
        f"refuse completes {refuse['RGSR']:.0%} and fail_persist {fumble['RGSR']:.0%} of the reference goals under "
        f"conflict: the outcome cannot tell them apart, but the process can (TAR {refuse['TAR']:.0%} against "
        f"{fumble['TAR']:.0%}, AMS {refuse['AMS']:.0%} against {fumble['AMS']:.0%})."
    )
