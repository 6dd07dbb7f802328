"""Task releases read: as a ``datasets.Dataset``, or as typed records without that package."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from ...toolkit.errors import DatasetError, NotFoundError, choices
from ...toolkit.records import Arm, Instance, LanguageProbe
from .columns import CONFIGS, CONTROLS, INSTANCE_COLUMNS, PROBES, SPLIT, columns_of, read_instance

if TYPE_CHECKING:
    import pyarrow as pa
    from datasets import Dataset


HOW_TO_GET = {
    CONTROLS: "; leave --controls out, or name a release that has them with --tasks",
    PROBES: "; conflictvla tasks build --probes  writes one with them",
}
"""What to do where a release lacks a config that not every one has."""

ARMS: dict[str, tuple[Arm, ...]] = {
    "references": (Arm.REFERENCE,),
    "instances": (Arm.CONFLICT,),
    CONTROLS: (Arm.CONTROL,),
}
"""Arms of what the configs hold; of any other config, of all arms."""


def packaged_tasks() -> Path:
    """Folder of the task release that the package carries."""
    return Path(str(resources.files("conflictvla.dataset_cards"))) / "tasks"


def load_tasks(config: str = "instances", path: Path | str | None = None) -> Dataset:
    """The tasks as a ``datasets.Dataset``, without network access.

    Args:
        config: ``instances`` (every case under P0 and P1), ``cases``, ``references`` (the base instructions), or, where
            the release has it, ``controls`` (every case with its conflict repaired) or ``probes`` (cases and base
            instructions in other words, W1 to W4).
        path: Folder of another release; the packaged one by default.

    Raises:
        NotFoundError: There is no such config.
        DatasetError: The folder is not a task release, or its file is damaged.
    """
    from datasets import Dataset
    from datasets.table import InMemoryTable

    known = (*CONFIGS, CONTROLS, PROBES)
    if config not in known:
        raise NotFoundError(f"no config '{config}' of the tasks: {choices(config, [*known])}")
    file = _existing_file(config, path)
    table = _read_table(file, columns_of(config))
    with _damage_in_one_line(file):
        return Dataset(InMemoryTable(table))  # features travel in the file's own metadata


def load_instances(
    path: Path | str | None = None, language: Sequence[LanguageProbe] = (LanguageProbe.W0,)
) -> tuple[Instance, ...]:
    """All references, conflict instances and controls as typed records, in that order, those under a probe last.

    It does without the package ``datasets``, whose import takes longer than everything else a command does here.

    Args:
        path: Folder of another release, with or without controls; the packaged one by default.
        language: Language probes; W0 is the release's own words.

    Raises:
        DatasetError: The folder is not a task release, has no probes, or its file is damaged.
    """
    found: list[Instance] = []
    if LanguageProbe.W0 in language:
        found += [instance for config in _configs_without_probes(path) for instance in _read_instances(config, path)]
    if set(language) - {LanguageProbe.W0}:
        found += [instance for instance in _read_instances(PROBES, path) if instance.language_probe in language]
    return tuple(found)


def load_lite_cases(path: Path | str | None = None) -> frozenset[str]:
    """Case ids of a release's lite selection, as its column ``lite`` marks them.

    Raises:
        DatasetError: The folder is not a task release, or its file is damaged or has no such column.
    """
    table = _read_table(_existing_file("cases", path), ["case_id", "lite"])
    return frozenset(table.filter(table["lite"])["case_id"].to_pylist())


def load_all_instances(path: Path | str | None = None) -> tuple[Instance, ...]:
    """All references, conflict instances and controls, without and, where the release has them, under language probes.

    Raises:
        DatasetError: The folder is not a task release, or a file is damaged.
    """
    return load_instances(path, tuple(LanguageProbe) if has_probes(path) else (LanguageProbe.W0,))


def has_controls(path: Path | str | None = None) -> bool:
    """Whether a release has its cases with their conflict repaired too."""
    return _file_of(CONTROLS, path).is_file()


def check_has_controls(path: Path | str | None = None) -> None:
    """Make sure that a release has its cases with their conflict repaired too.

    Raises:
        DatasetError: It has not.
    """
    _existing_file(CONTROLS, path)


def instances_table(columns: Sequence[str], path: Path | str | None = None) -> pa.Table:
    """Some columns of all references, conflict instances and controls, and of those under language probes.

    Args:
        columns: Names of columns that all these configs have.
        path: Folder of another release; the packaged one by default.

    Raises:
        DatasetError: The folder is not a task release, or a file is damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = []
    for config in (*_configs_without_probes(path), *([PROBES] if has_probes(path) else [])):
        file = _existing_file(config, path)
        with _damage_in_one_line(file):
            table = pq.read_table(file, columns=list(columns)).select(columns)
            tables.append(_with_names(table).replace_schema_metadata(None))
    return pa.concat_tables(tables)


def has_probes(path: Path | str | None = None) -> bool:
    """Whether a release has its instances under language probes too."""
    return _file_of(PROBES, path).is_file()


def _configs_without_probes(path: Path | str | None) -> tuple[str, ...]:
    return ("references", "instances", *([CONTROLS] if has_controls(path) else []))


def _read_instances(config: str, path: Path | str | None) -> list[Instance]:
    file = _existing_file(config, path)
    columns = [*INSTANCE_COLUMNS, "language_probe"] if config == PROBES else [*INSTANCE_COLUMNS]
    table = _read_table(file, columns)
    with _damage_in_one_line(file):
        found = [read_instance(row) for row in _with_names(table.select(columns)).to_pylist()]
    expected = ARMS.get(config, tuple(Arm))
    for instance in found:
        if instance.arm not in expected:
            raise DatasetError(
                f"{file}: '{instance.instance_id}' is a {instance.arm} by its columns case_id and factors, among "
                f"{config}; write it anew"
            )
    return found


def _with_names(table: pa.Table) -> pa.Table:
    """The table with the names of class labels, from the features in its metadata, in place of their numbers."""
    import pyarrow as pa

    features = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
    for index, column in enumerate(table.column_names):
        if features[column].get("_type") == "ClassLabel":
            names = pa.array(features[column]["names"]).take(table[column].combine_chunks())
            table = table.set_column(index, column, names)
    return table


def _file_of(config: str, path: Path | str | None) -> Path:
    return (Path(path) if path is not None else packaged_tasks()) / config / f"{SPLIT}.parquet"


def _existing_file(config: str, path: Path | str | None) -> Path:
    file = _file_of(config, path)
    if not file.is_file():
        what = f"a task release without {config}" if config in (CONTROLS, PROBES) else "not a task release"
        how = HOW_TO_GET.get(config, "")
        raise DatasetError(f"{file.parents[1]}: {what}, {config}/{SPLIT}.parquet is missing{how}")
    return file


def _read_table(file: Path, columns: Iterable[str]) -> pa.Table:
    """The file's table, which must have these columns."""
    import pyarrow.parquet as pq

    with _damage_in_one_line(file):
        table = pq.read_table(file)
    missing = [column for column in columns if column not in table.column_names]
    if missing:
        raise DatasetError(f"{file}: is no file of tasks, it has no column '{missing[0]}'; write it anew")
    return table


@contextmanager
def _damage_in_one_line(file: Path) -> Iterator[None]:
    """Turn whatever Arrow or ``datasets`` raise on a damaged file into one line that names it."""
    import pyarrow as pa

    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, OSError, pa.ArrowException) as error:
        raise DatasetError(f"{file}: cannot be read as tasks ({error!r:.100}); write it anew") from error
