"""What is shown of a run while its rollouts are executed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..toolkit.records import Arm
from .console import print_json, progress_bar

if TYPE_CHECKING:
    from ..eval.rollouts.run import RunProgress


@contextmanager
def run_progress(total: int, *, as_json: bool) -> Iterator[Callable[[RunProgress], None]]:
    """What is shown after each rollout: an event a line for machines, or a bar with the success so far per arm."""
    if as_json:
        yield lambda state: print_json(_event(state))
        return
    successes: dict[str, list[bool]] = {arm: [] for arm in Arm}
    with progress_bar("rollouts", total) as advance:

        def show(state: RunProgress) -> None:
            if state.job is None:
                advance("continuing" if state.done else "starting the simulator", state.done)
                return
            successes[state.job.instance.arm].append(bool(state.success))
            rates = ", ".join(f"{arm} {sum(each)}/{len(each)}" for arm, each in successes.items() if each)
            advance(f"reached the goal: {rates}")

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
    }


def show_by_agent(advance: Callable[..., None]) -> Callable[[str, RunProgress], None]:
    """Show the runs of several agents in one bar: each rollout, and at once all that an earlier call finished."""

    def show(agent: str, state: RunProgress) -> None:
        if state.job is None:
            advance(f"{agent}: ", state.done)
        else:
            advance(f"{agent}: {state.job.instance.instruction}")

    return show
