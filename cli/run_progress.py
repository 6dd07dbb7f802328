"""What is shown of a run while its rollouts are executed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from ..toolkit.records import Arm
from .console import ERR, print_json, print_line, print_warning, progress_bar

if TYPE_CHECKING:
    from ..eval.rollouts.run import RunProgress


@contextmanager
def run_progress(*, as_json: bool) -> Iterator[Callable[[RunProgress], None]]:
    """What is shown after each rollout: an event a line for machines, or a bar with the success so far per arm."""
    if as_json:
        yield lambda state: print_json(_event(state))
        return
    successes: dict[str, list[bool]] = {arm: [] for arm in Arm}
    bar: list[Callable[..., None]] = []
    shown = 0
    with ExitStack() as showing:

        def show(state: RunProgress) -> None:
            nonlocal shown
            if not bar:
                bar.append(showing.enter_context(progress_bar("rollouts", state.total)))
            if state.waiting is not None:
                print_line(state.waiting, to=ERR)
            if state.job is not None:
                successes[state.job.instance.arm].append(bool(state.success))
            rates = ", ".join(f"{arm} {sum(each)}/{len(each)}" for arm, each in successes.items() if each)
            start = "continuing" if state.done else "starting the simulator"
            # Other processes may have finished some since the last report.
            bar[0](f"reached the goal: {rates}" if rates else start, state.done - shown)
            shown = state.done

        yield show


def _event(state: RunProgress) -> dict[str, Any]:
    job = state.job
    return {
        "done": state.done,
        "total": state.total,
        "instance_id": None if job is None else job.instance.instance_id,
        "init_state": None if job is None else job.init_state,
        "success": state.success,
        "error": state.error,
        "clipped_actions": state.clipped_actions,
        "waiting": state.waiting,
    }


def warn_of_missing(source: str) -> None:
    """Warn of the unfinished runs and the failed rollouts in a folder, which are not among those of its datasets."""
    from ..eval.recordings.finding import find_runs
    from ..eval.recordings.sources import HUB, local_folder

    if not source.startswith(HUB):
        found = find_runs(local_folder(source))
        for run in found.unfinished if found.datasets else ():  # else there is nothing but an error
            print_warning(f"{run}; what is not in the dataset yet is left out")
        for listed in found.failures if found.datasets else ():
            print_warning(str(listed))


def show_by_agent(advance: Callable[..., None]) -> Callable[[str, RunProgress], None]:
    """Show the runs of several agents in one bar: each rollout, and at once all that an earlier call finished."""

    def show(agent: str, state: RunProgress) -> None:
        if state.waiting is not None:
            print_line(f"{agent}: {state.waiting}", to=ERR)
        elif state.job is None:
            advance(f"{agent}: ", state.done)
        else:
            advance(f"{agent}: {state.job.instance.instruction}")

    return show
