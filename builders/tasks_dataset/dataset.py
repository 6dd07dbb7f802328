"""The dataset of tasks: written as parquet with explicit features, read back by ``load_tasks`` or ``load_dataset``.

A folder written here is laid out as on the Hub: a card whose header lists the configs, and one parquet file a config.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...toolkit.errors import DatasetError, InvalidInputError, NotFoundError, choices
from ...toolkit.records import PROTOCOL_VERSION, SUITES, Arm, Factor, Family, Instance, LanguageProbe, Level, Prompt
from ..review.ledger import UNREVIEWED, case_contents, read_ledger, review_status, review_summary, standing_verdicts

if TYPE_CHECKING:
    import pyarrow as pa
    from datasets import Dataset, Features

    from ..cases.cases import Case

CONFIGS = ("instances", "cases", "references")
PROBES = "probes"
"""A further config that a release may have: its instances under language probes."""

SPLIT = "test"
COLUMNS = tuple(field.name for field in fields(Instance) if field.name not in ("arm", "language_probe"))
"""Columns that an ``Instance`` is read from; the arm follows from them, and these configs hold no probes."""


def packaged_tasks() -> Path:
    """Folder of the task release that the package carries."""
    return Path(str(resources.files("conflictvla.dataset_cards"))) / "tasks"


def load_tasks(config: str = "instances", path: Path | str | None = None) -> Dataset:
    """The tasks as a ``datasets.Dataset``, without network access.

    Args:
        config: ``instances`` (every case under P0 and P1), ``cases``, ``references`` (the base instructions), or
            ``probes`` (cases and base instructions in other words, W1 to W4).
        path: Folder of another release; the packaged one by default.

    Raises:
        NotFoundError: There is no such config.
        DatasetError: The folder is not a task release, or its file is damaged.
    """
    from datasets import Dataset
    from datasets.table import InMemoryTable

    if config not in (*CONFIGS, PROBES):
        raise NotFoundError(f"no config '{config}' of the tasks: {choices(config, [*CONFIGS, PROBES])}")
    file = _file_of(config, path)
    table = _read(file, features_of(config))
    with _said_in_one_line(file):
        return Dataset(InMemoryTable(table))  # features travel in the file's own metadata


def load_instances(
    path: Path | str | None = None, language: Sequence[LanguageProbe] = (LanguageProbe.W0,)
) -> tuple[Instance, ...]:
    """All references and conflict instances as typed records, references first, without a probe before those under one.

    It does without the package ``datasets``, whose import takes longer than everything else a command does here.

    Args:
        path: Folder of another release; the packaged one by default.
        language: Language probes; W0 is the release's own words.

    Raises:
        DatasetError: The folder is not a task release, has no probes, or its file is damaged.
    """
    found: list[Instance] = []
    if LanguageProbe.W0 in language:
        found += [instance for config in ("references", "instances") for instance in _instances(config, path)]
    if set(language) - {LanguageProbe.W0}:
        found += [instance for instance in _instances(PROBES, path) if instance.language_probe in language]
    return tuple(found)


def load_all_wordings(path: Path | str | None = None) -> tuple[Instance, ...]:
    """All references and conflict instances, without and, where the release has them, under language probes.

    Raises:
        DatasetError: The folder is not a task release, or a file is damaged.
    """
    return load_instances(path, tuple(LanguageProbe) if has_probes(path) else (LanguageProbe.W0,))


def has_probes(path: Path | str | None = None) -> bool:
    """Whether a release has its instances under language probes too."""
    return _path(PROBES, path).is_file()


def _instances(config: str, path: Path | str | None) -> Iterator[Instance]:
    file = _file_of(config, path)
    table = _read(file, (*COLUMNS, "language_probe") if config == PROBES else COLUMNS)
    with _said_in_one_line(file):
        suites = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]["suite"]["names"]
        for row in table.to_pylist():
            yield _instance(row, suites)


def _file_of(config: str, path: Path | str | None) -> Path:
    file = _path(config, path)
    if not file.is_file():
        what = "a task release without probes" if config == PROBES else "not a task release"
        how = "; conflictvla tasks build --probes  writes one with them" if config == PROBES else ""
        raise DatasetError(f"{file.parents[1]}: {what}, {config}/{SPLIT}.parquet is missing{how}")
    return file


def _path(config: str, path: Path | str | None) -> Path:
    return (Path(path) if path is not None else packaged_tasks()) / config / f"{SPLIT}.parquet"


def _read(file: Path, columns: Iterable[str]) -> pa.Table:
    """The whole file, which must have these columns."""
    import pyarrow.parquet as pq

    with _said_in_one_line(file):
        table = pq.read_table(file)
    missing = [column for column in columns if column not in table.column_names]
    if missing:
        raise DatasetError(f"{file}: is no file of tasks, it has no column '{missing[0]}'; write it anew")
    return table


@contextmanager
def _said_in_one_line(file: Path) -> Iterator[None]:
    """Whatever Arrow or ``datasets`` make of a damaged file."""
    import pyarrow as pa

    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, OSError, pa.ArrowException) as error:
        raise DatasetError(f"{file}: cannot be read as tasks ({error!r:.100}); write it anew") from error


def write_tasks(cases: Sequence[Case], out: Path) -> None:
    """Write a task release to a new folder, all or nothing.

    Raises:
        InvalidInputError: The folder exists and is not empty, or cannot be written.
    """
    with new_release(out) as aside:
        for config, rows, features in _configs(cases):
            write_parquet(rows, features, aside / config / f"{SPLIT}.parquet")
        (aside / "README.md").write_text(task_card(cases), encoding="utf-8")


@contextmanager
def new_release(out: Path) -> Iterator[Path]:
    """A folder to write a release into, which is moved to its place when all is written, or removed.

    Raises:
        InvalidInputError: The place exists and is not empty, or cannot be written.
    """
    check_writable(out)
    aside = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        yield aside
        aside.chmod(0o755)
        if out.exists():
            out.rmdir()
        os.replace(aside, out)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def check_writable(out: Path) -> None:
    """Make sure, before hours of work, that a release can be written.

    Raises:
        InvalidInputError: The folder exists and is not empty, or cannot be written.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InvalidInputError(f"{out}: exists and is not empty; choose another folder or remove it")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent).cleanup()
    except OSError as error:
        raise InvalidInputError(f"{out}: cannot be written ({error.strerror}); choose another folder") from error


def task_card(cases: Sequence[Case]) -> str:
    """The release's README: the configs for the Hub, a snippet, the count table and the limits."""
    from ..cases.cases import TASKS_VERSION

    template = resources.files("conflictvla.dataset_cards").joinpath("tasks_card.md").read_text(encoding="utf-8")
    return template.format(
        version=TASKS_VERSION,
        cases=len(cases),
        instances=2 * len(cases),
        references=2 * len({case.task.task_id for case in cases}),
        base_tasks=len({case.task.task_id for case in cases}),
        counts="\n".join(_count_table(cases)),
        by_suite="\n".join(_suite_table(cases)),
        review=review_summary(cases, read_ledger()),
    )


def count_rows(cases: Sequence[Case]) -> list[tuple[str, list[int]]]:
    """How many cases each family has on each level and in all, and all families together, last."""
    rows = []
    for family in (*Family, None):
        levels = [case.candidate.level for case in cases if family in (None, case.candidate.family)]
        rows.append((str(family or "all"), [*(levels.count(level) for level in Level), len(levels)]))
    return rows


def _count_table(cases: Sequence[Case]) -> list[str]:
    lines = [
        "| family | " + " | ".join(Level) + " | all |",
        "| --- | " + " | ".join("---:" for _ in Level) + " | ---: |",
    ]
    return lines + [f"| {name} | " + " | ".join(map(str, counts)) + " |" for name, counts in count_rows(cases)]


def _suite_table(cases: Sequence[Case]) -> list[str]:
    """Cases of each suite, and the fewest and most of one base task."""
    lines = [
        "| suite | base tasks | cases | fewest of a task | most of a task |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for suite in dict.fromkeys(case.task.suite for case in cases):
        of_task = Counter(case.task.task_id for case in cases if case.task.suite == suite)
        counts = (len(of_task), of_task.total(), min(of_task.values()), max(of_task.values()))
        lines.append(f"| {suite} | " + " | ".join(map(str, counts)) + " |")
    return lines


def _configs(cases: Sequence[Case]) -> list[tuple[str, list[dict[str, Any]], Features]]:
    from ..cases.cases import conflict_instance, reference_instance

    one_per_task = list({case.task.task_id: case for case in cases}.values())
    standing = standing_verdicts(case_contents(cases), read_ledger())
    conflicts = [
        instance_row(conflict_instance(case, prompt), review_status(standing.get(case.case_id)))
        for case in cases
        for prompt in Prompt
    ]
    references = [
        instance_row(reference_instance(case, prompt), UNREVIEWED) for case in one_per_task for prompt in Prompt
    ]
    others = sorted({case.task.suite for case in cases} - set(SUITES))
    instance_features, case_features = (features_of(name, [*SUITES, *others]) for name in ("instances", "cases"))
    rows_of_cases = [{name: row[name] for name in case_features} for row in conflicts[:: len(Prompt)]]
    return [
        ("instances", conflicts, instance_features),
        ("cases", rows_of_cases, case_features),
        ("references", references, instance_features),
    ]


def features_of(config: str, suites: Sequence[str] = SUITES) -> Features:
    """Columns of a config: a case is an instance without a prompt condition, a probe one in other words."""
    features = _features(suites)
    if config == PROBES:
        features |= _probe_features()
    for column in ("instance_id", "pair_id", "prompt") if config == "cases" else ():
        del features[column]
    return features


def _probe_features() -> Features:
    from datasets import ClassLabel, Features, List, Value

    return Features(
        {
            "language_probe": ClassLabel(names=list(LanguageProbe)),
            "substitutions": List(
                {
                    name: Value("string")
                    for name in ("slot", "word", "substitute", "relation", "synset", "substitute_synset")
                }
            ),
            "lexicon_version": Value("string"),
        }
    )


def _features(suites: Sequence[str]) -> Features:
    from datasets import ClassLabel, Features, List, Value

    return Features(
        {
            "instance_id": Value("string"),
            "case_id": Value("string"),
            "pair_id": Value("string"),
            "suite": ClassLabel(names=list(suites)),
            "base_task": Value("string"),
            "base_task_index": Value("int32"),
            "base_instruction": Value("string"),
            "instruction": Value("string"),
            "prompt": ClassLabel(names=list(Prompt)),
            "family": ClassLabel(names=list(Family)),
            "level": ClassLabel(names=list(Level)),
            "operator": Value("string"),
            "plan": Value("string"),
            "factors": List(
                {
                    "family": Value("string"),
                    "premise": Value("string"),
                    "expected": Value("string"),
                    "observed": Value("string"),
                    "margin": Value("float64"),
                }
            ),
            "targets": List(Value("string")),
            "reference_goal": Value("string"),
            "bddl_file": Value("string"),
            "horizon": Value("int32"),
            "review": Value("string"),
            "tasks_version": Value("string"),
            "protocol_version": Value("string"),
        }
    )


def instance_row(instance: Instance, review: str) -> dict[str, Any]:
    """The instance as a row of a config, but for what only probes have."""
    from ...toolkit.libero.base_tasks import base_task

    task = base_task(instance.suite, instance.base_task)
    return {
        "instance_id": instance.instance_id,
        "case_id": instance.case_id,
        "pair_id": instance.pair_id,
        "suite": instance.suite,
        "base_task": instance.base_task,
        "base_task_index": instance.base_task_index,
        "base_instruction": instance.base_instruction,
        "instruction": instance.instruction,
        "prompt": instance.prompt,
        "family": instance.family,
        "level": instance.level,
        "operator": instance.operator,
        "plan": instance.plan,
        "factors": [
            {
                "family": str(factor.family),
                "premise": factor.premise,
                "expected": factor.expected,
                "observed": factor.observed,
                "margin": factor.margin,
            }
            for factor in instance.factors
        ],
        "targets": list(instance.targets),
        "reference_goal": json.dumps(task.goal),
        "bddl_file": task.bddl_file,
        "horizon": instance.horizon,
        "review": review,
        "tasks_version": instance.tasks_version,
        "protocol_version": PROTOCOL_VERSION,
    }


def _instance(row: dict[str, Any], suites: Sequence[str]) -> Instance:
    family = None if row["family"] is None else list(Family)[row["family"]]
    return Instance(
        instance_id=row["instance_id"],
        case_id=row["case_id"],
        pair_id=row["pair_id"],
        arm=Arm.REFERENCE if row["case_id"] is None else Arm.CONFLICT,
        suite=suites[row["suite"]],
        base_task=row["base_task"],
        base_task_index=row["base_task_index"],
        base_instruction=row["base_instruction"],
        instruction=row["instruction"],
        prompt=list(Prompt)[row["prompt"]],
        family=family,
        level=None if row["level"] is None else list(Level)[row["level"]],
        operator=row["operator"],
        plan=row["plan"],
        factors=tuple(
            Factor(
                family=Family(factor["family"]),
                premise=factor["premise"],
                expected=factor["expected"],
                observed=factor["observed"],
                margin=factor["margin"],
            )
            for factor in row["factors"]
        ),
        targets=tuple(row["targets"]),
        horizon=row["horizon"],
        tasks_version=row["tasks_version"],
        language_probe=list(LanguageProbe)[row.get("language_probe", 0)],
    )


def write_parquet(rows: list[dict[str, Any]], features: Features, file: Path) -> None:
    """One file of a release, with its features in the metadata."""
    import pyarrow.parquet as pq
    from datasets import Dataset

    file.parent.mkdir(parents=True)
    pq.write_table(Dataset.from_list(rows, features=features).data.table, file)
