"""The columns of the tasks dataset follow from the records: nothing is listed a second time."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from datasets import Features, List, Value

from conflictvla.builders.record_fields import field_values
from conflictvla.builders.tasks_dataset.columns import (
    CONFIGS,
    INSTANCE_COLUMNS,
    PROBES,
    ROWS,
    WITHOUT_COLUMN,
    InstanceRow,
    columns_of,
    features_of,
)
from conflictvla.builders.tasks_dataset.reading import load_instances, load_tasks
from conflictvla.builders.tasks_dataset.writing import instance_row, write_config
from conflictvla.toolkit.records import Arm, Family, Instance

CONFLICT = next(instance for instance in load_instances() if instance.arm is Arm.CONFLICT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    family: Family
    distance_m: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WiderRow(InstanceRow):
    difficulty: int
    sightings: tuple[Sighting, ...]


@pytest.mark.parametrize("config", [*CONFIGS, PROBES])
def test_columns_are_the_fields_of_the_record(config: str) -> None:
    names = {field.name for field in fields(ROWS[config])}

    assert set(columns_of(config)) == names - WITHOUT_COLUMN[config]
    assert list(columns_of(config)) == list(features_of(config)) == load_tasks(config).column_names


def test_columns_that_only_a_release_has_leave_the_instances_order_as_it_is() -> None:
    columns = list(columns_of("instances"))
    of_instance = [field.name for field in fields(Instance) if field.name in columns]

    assert [column for column in columns if column in of_instance] == of_instance == list(INSTANCE_COLUMNS)
    assert columns[columns.index("targets") :] == [
        "targets",
        "reference_goal",
        "bddl_file",
        "horizon",
        "review",
        "lite",
        "tasks_version",
        "protocol_version",
    ]


def test_field_added_to_the_record_is_a_feature_and_is_written(tmp_path: Path) -> None:
    row = WiderRow(
        **field_values(instance_row(CONFLICT, "unreviewed")),
        difficulty=3,
        sightings=(Sighting(family=Family.SPATIAL, distance_m=0.25), Sighting(family=Family.PHYSICAL, distance_m=None)),
    )

    features = features_of("instances", row=WiderRow)
    assert features == Features(
        {
            **features_of("instances"),
            "difficulty": Value("int32"),
            "sightings": List({"family": Value("string"), "distance_m": Value("float64")}),
        }
    )
    write_config("instances", [row], tmp_path)
    table = pq.read_table(tmp_path / "instances" / "test.parquet")
    assert table.column_names == list(features)
    (written,) = table.to_pylist()
    assert (written["difficulty"], written["sightings"]) == (
        3,
        [{"family": "spatial", "distance_m": 0.25}, {"family": "physical", "distance_m": None}],
    )


@pytest.mark.parametrize("instance", [CONFLICT, load_instances()[0]], ids=["conflict", "reference"])
def test_row_holds_the_instance(instance: Instance) -> None:
    row = instance_row(instance, "accept, stage 1, Ann")

    assert Instance(**{name: getattr(row, name) for name in field_values(instance)}) == instance
    assert (row.review, row.bddl_file) == ("accept, stage 1, Ann", f"{instance.base_task}.bddl")
