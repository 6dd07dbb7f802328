"""The page's first lines: what the scores show, in words."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...analyses.columns import percent
from ...scores.scores import Scores


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyResult:
    """How often the invalid task is completed, then what the failures look like.

    Attributes:
        outcome: One sentence.
        process: Two sentences; empty where no qualified failure has a defined TAR.
    """

    outcome: str
    process: str


def key_result(scores: Scores) -> KeyResult:
    """The key result of scores; of several policies it names the lowest and the highest."""
    rows = scores.table("overall").to_pylist()
    if not rows and not scores.provenance.conflicts:
        return KeyResult(outcome=_plain_success(scores), process="There are no pairs: only references were rolled out.")
    if not rows:
        return KeyResult(outcome="No pair could be scored", process="")
    low, high = (end(rows, key=lambda row: row["RGSR"]) for end in (min, max))
    if len(rows) == 1:
        reached = f"{percent(low['RGSR'])}% of rollouts, against {percent(low['PCSR'])}% with valid ones"
        outcome = f"With invalid premises {low['policy']} still reaches the reference goal in {reached}"
    elif percent(low["RGSR"]) == percent(high["RGSR"]):
        reached = f"{percent(low['RGSR'])}% of rollouts"
        outcome = f"With invalid premises all {len(rows)} policies still reach the reference goal in {reached}"
    else:
        reached = f"{percent(low['RGSR'])}% ({low['policy']}) to {percent(high['RGSR'])}% ({high['policy']})"
        outcome = f"With invalid premises the reference goal is still reached in {reached} of rollouts"
    return KeyResult(outcome=outcome, process=_describe_failures(scores))


def _plain_success(scores: Scores) -> str:
    """Success on the base tasks' own instructions, policy by policy."""
    whole = [row for row in scores.table("success").to_pylist() if row["among"] == "all"]
    each = (f"{percent(row['success'])}% by {row['policy']} ({row['prompt']})" for row in whole)
    return "Valid instructions carried out: " + ", ".join(each)


def _describe_failures(scores: Scores) -> str:
    rows = [row for row in scores.table("qualified").to_pylist() if not math.isnan(row["TAR"])]
    if not rows:
        return ""
    least, most = (end(rows, key=lambda row: row["TAR"]) for end in (min, max))
    covered = f"{percent(least['TAR'])}% ({least['policy']})"
    if least is not most:
        covered += f" to {percent(most['TAR'])}% ({most['policy']})"
    return (
        f"Where a policy fails although its reference rollout succeeds, its gripper still covers {covered} of the "
        "reference rollout's approach to the target. Failing alone does not tell refusal from failed persistence."
    )
