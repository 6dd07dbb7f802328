"""What a run would take, shown before it is run."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..toolkit.counting import counted
from .console import OUT, plain_table, print_json, print_line, progress_bar

if TYPE_CHECKING:
    from ..eval.dry_run import DryRun
    from ..eval.rollouts.jobs import RunShard
    from ..toolkit.records import Instance, VisualProbe


def show_dry_run(
    policy: str,
    instances: Sequence[Instance],
    out: Path,
    *,
    init_states: Sequence[int],
    seeds: Sequence[int],
    visual_probes: Sequence[VisualProbe],
    shard: RunShard | None,
    workers: int,
    as_json: bool,
) -> None:
    """Print how many rollouts a run has, and about how long and how large it gets.

    Args:
        policy: The policy's name.
        instances: The instances of the run.
        out: Folder of its dataset.
        init_states: As for ``run_policy``, as the next three are.
        seeds: Each run once.
        visual_probes: Each run once.
        shard: The part that is meant; None for all of it.
        workers: Processes that will share the rollouts.
        as_json: Whether to print JSON.
    """
    from ..eval.dry_run import dry_run

    suites = len({instance.suite for instance in instances})
    with progress_bar("suites measured", suites) as advance:
        found = dry_run(
            policy,
            instances,
            out,
            init_states=init_states,
            seeds=seeds,
            visual_probes=visual_probes,
            shard=shard,
            progress=advance,
        )
    if as_json:
        print_json(dataclasses.asdict(found))
        return
    table = plain_table("arm", "prompt", "rollouts")
    for count in found.counts:
        table.add_row(count.arm, count.prompt, f"{count.rollouts:,}")
    OUT.print(table)
    part = "" if shard is None else f" in part {shard}"
    recorded = f", {found.recorded:,} of them recorded already" if found.recorded else ""
    print_line(f"{counted(found.rollouts, 'rollout')}{part}{recorded}")
    print_line(_time_text(found, workers))
    print_line(f"about {_rounded(found.gigabytes)} GB on disk, and twice that while the dataset is put together")
    print_line("nothing was run that stays")


def _time_text(found: DryRun, workers: int) -> str:
    if found.recorded == found.rollouts:
        return "nothing is left to run"
    if found.hours is None or found.action_s is None:
        return f"hours unknown, since the policy could not be measured here: {found.not_measured}"
    shared = f", {_rounded(found.hours / workers)} in {workers} that do not wait for each other" if workers > 1 else ""
    return (
        f"at most {_rounded(found.hours)} hours in one process{shared}: {1000 * found.action_s:.1f} ms an action, "
        f"measured just now with this policy on {', '.join(found.measured_on)}; what reaches its goal ends sooner"
    )


def _rounded(value: float) -> str:
    """Two significant digits."""
    return f"{value:.2g}" if value < 100 else f"{value:,.0f}"
