"""Change of behaviour under conditions: by hand, against scipy, and on made-up policies with known changes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from conflictvla.eval.analyses.tables.behaviour import behaviour_change, behaviour_correlation
from conflictvla.eval.analyses.tables.behaviour_by_task import (
    METRIC_NAMES,
    behaviour_by_task,
    median_absolute_deviation,
)
from conflictvla.eval.scoring.rollout_table import TRAJECTORY_COLUMNS
from conflictvla.toolkit.records import Arm, Family, Prompt, VisualProbe


def rollouts(
    values: list[float],
    *,
    task: str = "a",
    suite: str = "libero_goal",
    arm: Arm = Arm.REFERENCE,
    prompt: str = Prompt.P0,
    family: Family | None = None,
    failures: int = 0,
    policy: str = "persist",
    visual_probe: VisualProbe = VisualProbe.V0,
) -> list[dict[str, Any]]:
    """Successful rollouts with these durations, all other metrics 1, and failures that last for 99 s."""
    shared = {"policy": policy, "prompt": prompt, "arm": arm, "suite": suite, "base_task": task, "seed": 0}
    shared |= {"init_state": 0, "family": family, "level": None if family is None else "L1"}
    shared |= {"language_probe": "W0", "visual_probe": visual_probe}
    shared |= dict.fromkeys(METRIC_NAMES, 1.0)
    good = [{**shared, "success": True, "duration_s": value} for value in values]
    return good + [{**shared, "success": False, "duration_s": 99.0}] * failures


def table(*groups: list[dict[str, Any]]) -> pa.Table:
    rows = [{**row, "rollout_id": str(n)} for n, row in enumerate(row for group in groups for row in group)]
    return pa.Table.from_pylist(rows, schema=pa.schema(list(TRAJECTORY_COLUMNS.items())))


def duration(found: pa.Table, **where: str) -> dict[str, Any]:
    wanted = {"metric": "duration_s", **where}
    (row,) = [row for row in found.to_pylist() if all(row[name] == value for name, value in wanted.items())]
    return dict(row)


def conflict(values: list[float], family: Family = Family.SPATIAL, **more: Any) -> list[dict[str, Any]]:
    return rollouts(values, arm=Arm.CONFLICT, family=family, **more)


def test_change_of_a_base_task_by_hand() -> None:
    # Baseline 2, 4, 6, 8: mean 5, median 5, deviations 3, 1, 1, 3: MAD 2. Conflict 5, 6, 10: mean 7, MAD 1.
    found = behaviour_by_task(table(rollouts([2, 4, 6, 8], failures=1), conflict([5, 6, 10], failures=2)))
    for condition in ("conflict", "spatial", "L1"):
        row = duration(found, condition=condition)
        assert (row["baseline_mean"], row["mean"], row["change"]) == (5.0, 7.0, pytest.approx(0.4))
        assert (row["baseline_mad"], row["mad"], row["mad_change"]) == (2.0, 1.0, -0.5)
        assert (row["n_baseline"], row["n"]) == (4, 3)
        assert row["p"] == pytest.approx(stats.mannwhitneyu([2, 4, 6, 8], [5, 6, 10]).pvalue)


def test_a_probe_is_a_condition_of_its_own_and_no_part_of_the_others() -> None:
    probed = rollouts([3, 3], visual_probe=VisualProbe.V3) + conflict([9.0, 9.0], visual_probe=VisualProbe.V3)
    found = behaviour_by_task(table(rollouts([2, 2]), conflict([4.0, 4.0]), probed))
    assert duration(found, condition="V3")["change"] == pytest.approx(0.5)
    assert duration(found, condition="V3")["kind"] == "visual_probe"
    assert duration(found, condition="conflict")["change"] == pytest.approx(1.0)
    assert set(found["condition"].to_pylist()) == {"conflict", "spatial", "L1", "V3"}


def test_a_suite_has_the_median_of_its_base_tasks() -> None:
    groups = [rollouts([1.0, 1.0], task=task) for task in "abc"]
    groups += [conflict([1.1, 1.1], task="a"), conflict([1.2, 1.2], task="b"), conflict([9.0, 9.0], task="c")]
    trajectories = table(*groups)
    row = duration(behaviour_change(trajectories, behaviour_by_task(trajectories)), condition="spatial")
    assert row["change"] == pytest.approx(0.2)
    assert row["tasks"] == 3
    # A baseline that does not vary has no relative change of its variability.
    assert math.isnan(row["mad_change"])


def test_the_success_rates_are_over_the_base_tasks_of_both_conditions() -> None:
    trajectories = table(
        rollouts([1.0] * 3, task="a", failures=1),
        rollouts([1.0] * 9, task="never in conflict", failures=9),
        conflict([1.0], task="a", failures=3),
    )
    row = duration(behaviour_change(trajectories, behaviour_by_task(trajectories)), condition="spatial")
    assert (row["baseline_success_rate"], row["success_rate"]) == (0.75, 0.25)


def test_the_premise_check_prompt_is_compared_on_valid_premises() -> None:
    trajectories = table(
        rollouts([4.0, 5.0]), rollouts([8.0, 10.0], prompt=Prompt.P1), conflict([1.0], prompt=Prompt.P1)
    )
    found = behaviour_by_task(trajectories)
    assert set(found["condition"].to_pylist()) == {"P1"}
    assert duration(found, condition="P1")["change"] == pytest.approx(1.0)


def test_every_other_prompt_condition_is_compared_with_p0() -> None:
    trajectories = table(rollouts([4.0]), rollouts([8.0], prompt="placebo"), rollouts([2.0], prompt="careful"))
    changes = behaviour_change(trajectories, behaviour_by_task(trajectories))
    assert list(dict.fromkeys(changes["condition"].to_pylist())) == ["placebo", "careful"]
    assert duration(changes, condition="careful")["change"] == pytest.approx(-0.5)


def test_a_base_task_without_a_success_on_either_side_is_left_out() -> None:
    assert behaviour_by_task(table(rollouts([], failures=3), conflict([1.0, 2.0]))).num_rows == 0
    assert behaviour_by_task(table(rollouts([1.0, 2.0]), conflict([], failures=3))).num_rows == 0


def test_one_rollout_has_a_mean_and_neither_variability_nor_test() -> None:
    row = duration(behaviour_by_task(table(rollouts([2.0, 4.0]), conflict([6.0]))), condition="spatial")
    assert row["change"] == pytest.approx(1.0)
    assert math.isnan(row["mad"])
    assert math.isnan(row["p"])


def test_clear_changes_are_significant_and_noise_is_not() -> None:
    rng = np.random.default_rng(3)
    groups = []
    for task in "abcdefgh":
        groups.append(rollouts(list(rng.normal(5, 0.5, 25)), task=task))
        groups.append(conflict(list(rng.normal(7, 0.5, 25)), task=task))
        groups.append(conflict(list(rng.normal(5, 0.5, 25)), family=Family.PHYSICAL, task=task))
    trajectories = table(*groups)
    changes = behaviour_change(trajectories, behaviour_by_task(trajectories))
    assert duration(changes, condition="spatial")["significant"] == 8
    assert duration(changes, condition="physical")["significant"] <= 1
    assert duration(changes, condition="spatial")["change"] == pytest.approx(0.4, abs=0.05)


def test_loss_of_success_rises_with_the_change_of_duration() -> None:
    groups = [rollouts([10.0, 10.5], failures=0)]
    for number, family in enumerate(Family):
        groups.append(conflict([10.0 + number, 10.5 + number], family=family, failures=number))
    trajectories = table(*groups)
    changes = behaviour_change(trajectories, behaviour_by_task(trajectories))
    found = {row["metric"]: row for row in behaviour_correlation(changes).to_pylist()}
    row = found["duration_s"]
    # Four families and their one level: five points.
    assert row["n"] == 5
    assert row["rho"] > 0.9
    # The other metrics never change, so their ranks say nothing.
    assert math.isnan(found["joint_path_rad"]["rho"])


def test_policies_are_adjusted_apart() -> None:
    one = [rollouts([1.0, 2.0, 3.0]), conflict([7.0, 8.0, 9.0])]
    two = [[{**row, "policy": "stop"} for row in group] for group in one]
    alone, both = behaviour_by_task(table(*one)), behaviour_by_task(table(*one, *two))
    assert duration(both, policy="stop", condition="spatial")["q"] == duration(alone, condition="spatial")["q"]


def test_the_median_absolute_deviation_is_scipys() -> None:
    values = np.random.default_rng(0).normal(size=31)
    assert median_absolute_deviation(values) == pytest.approx(stats.median_abs_deviation(values))
