"""Costs of recorded rollouts, afterwards: by other conditions, or of recordings that were made without any."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ...builders.rollouts.episode_record import EpisodeRecord, episodes_table
from ...builders.rollouts.schema import SIM_STATES
from ...builders.rollouts.sim_states import read_sim_states
from ...toolkit.atomic_files import atomic_file
from ...toolkit.errors import DatasetError, InvalidInputError, first_line
from ...toolkit.safety import CostSpec, read_constraints
from ...toolkit.safety.blocks import print_cost
from ..recordings.reading import find_datasets, read_rollouts
from ..recordings.sources import local_folder

COLUMNS = ("rollout_id", "arm", "policy_name", "cost", "cost_amounts", "cost_spec")
"""Columns of a table of costs, a row a rollout."""

SUMMARY_SCHEMA = pa.schema(
    [
        ("policy", pa.string()),
        ("arm", pa.string()),
        ("predicate", pa.string()),
        ("mean", pa.float64()),
        ("n", pa.int64()),
    ]
)


def read_cost_spec(file: Path) -> CostSpec:
    """The conditions of a file with a ``(:cost ...)`` block.

    Raises:
        InvalidInputError: There is no such file, or no such block in it.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{file}: cannot be read ({first_line(error)})") from error
    cost = read_constraints(text, str(file)).cost
    if cost is None:
        raise InvalidInputError(f"{file}: has no (:cost ...) block; write one such as (:cost (Moved plate_1))")
    return cost


def analyse_costs(
    source: Path | str,
    *,
    spec: CostSpec | None = None,
    force_limit_n: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> pa.Table:
    """What recorded rollouts cost, from their simulator states; without states, or for forces, by executing them again.

    Args:
        source: One or more rollout datasets, as for ``score``.
        spec: Conditions for all of them; those that apply to each (see ``rollouts.costs.cost_spec``) by default.
        force_limit_n: Without ``spec``: the robot's pressing an object harder than this costs as well, in N.
        progress: Called with each rollout's id when it is done.

    Returns:
        ``COLUMNS``, a row a rollout.

    Raises:
        DatasetError: A dataset is damaged.
        InvalidInputError: A scene does not have what the conditions are about.
    """
    from ...toolkit.simulation.scene_pool import ScenePool
    from .costs import cost_of_actions, cost_of_states, cost_spec, needs_actions

    costs: list[EpisodeRecord] = []
    scenes = ScenePool()
    for folder in find_datasets(local_folder(source)):
        rollouts = read_rollouts(folder, ("action",))
        has_states = (folder / SIM_STATES).is_dir()
        episodes = rollouts.records()
        for row in sorted(range(len(rollouts)), key=lambda row: (episodes[row].suite, episodes[row].base_task)):
            episode = episodes[row]
            scene = scenes.scene(episode.suite, episode.base_task)
            if episode.scene_sha256 != scene.scene_sha256:
                raise DatasetError(f"{folder}: {episode.rollout_id}: was recorded in another scene than this one")
            applied = spec or cost_spec(scene, episode.arm, force_limit_n=force_limit_n)
            if has_states and not needs_actions(applied):
                result = cost_of_states(scene, applied, read_sim_states(folder, [row])[row])
            else:
                result = cost_of_actions(scene, applied, episode.init_state, rollouts.rollout_feature("action", row))
            costs.append(
                dataclasses.replace(
                    episode, cost=result.total, cost_amounts=result.amounts, cost_spec=print_cost(applied)
                )
            )
            if progress:
                progress(episode.rollout_id)
    return episodes_table(costs).select(COLUMNS).sort_by("rollout_id")


def cost_summary(costs: pa.Table) -> pa.Table:
    """Mean cost of a rollout by policy and arm, and what part of it each predicate makes.

    Args:
        costs: With ``COLUMNS``.

    Returns:
        ``policy``, ``arm``, ``predicate`` (``all`` for the whole cost), ``mean`` and ``n``, the number of rollouts.
    """
    amounts: dict[tuple[str, str], dict[str, list[float]]] = {}
    predicates: dict[str, tuple[str, ...]] = {}
    for row in costs.to_pylist():
        spec = row["cost_spec"]
        if spec not in predicates:
            predicates[spec] = _predicate_names(spec)
        of_arm = amounts.setdefault((row["policy_name"], row["arm"]), {})
        of_arm.setdefault("all", []).append(row["cost"])
        for name, amount in zip(predicates[spec], row["cost_amounts"], strict=True):
            of_arm.setdefault(name, []).append(amount)
    rows = []
    for (policy, arm), of_arm in sorted(amounts.items()):
        count = len(of_arm["all"])
        for name, values in of_arm.items():
            rows.append({"policy": policy, "arm": arm, "predicate": name, "mean": sum(values) / count, "n": count})
    return pa.Table.from_pylist(rows, schema=SUMMARY_SCHEMA)


def _predicate_names(spec: str) -> tuple[str, ...]:
    """The predicate of each condition of a printed ``(:cost ...)`` block, such as ``Moved``."""
    cost = read_constraints(spec, "cost_spec").cost
    assert cost is not None  # printed from one
    return tuple(str(condition)[1:].split(" ")[0] for condition in cost.conditions)


def write_costs(costs: pa.Table, file: Path) -> None:
    """Write a file of costs: it is complete or absent.

    Raises:
        InvalidInputError: It cannot be written.
    """
    with atomic_file(file) as aside:
        pq.write_table(costs, aside)
