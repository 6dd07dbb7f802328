"""Task releases written: a folder as on the Hub, with a card and one parquet file a config."""

from __future__ import annotations

import json
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path

from ...toolkit.errors import NotFoundError
from ...toolkit.libero.base_tasks import base_task
from ...toolkit.prompts import RELEASED
from ...toolkit.records import PROTOCOL_VERSION, SUITES, Instance, Prompt
from ..cases.case import Case, Control
from ..cases.instances import conflict_instance, control_instance, reference_instance
from ..cases.lite import lite_cases
from ..record_fields import field_values
from ..release_folder import new_release
from ..review.ledger import UNREVIEWED, case_contents, read_ledger, review_status, standing_verdicts
from .card import task_card
from .columns import CONTROLS, SPLIT, ControlRow, InstanceRow, WordsRow, features_of, plain_row


def write_tasks(cases: Sequence[Case], out: Path, controls: Sequence[Control] = ()) -> None:
    """Write a task release to a new folder, atomically.

    Args:
        cases: Its cases.
        out: The new folder.
        controls: Of some or all of the cases; without any the release has no such config.

    Raises:
        InvalidInputError: The folder exists and is not empty, or cannot be written.
        NotFoundError: A control is of no case of the release.
    """
    repaired = _control_rows(cases, controls)
    with new_release(out) as aside:
        conflicts = _conflict_rows(cases)
        write_config("instances", conflicts, aside)
        write_config("cases", conflicts[:: len(RELEASED)], aside)
        write_config("references", _reference_rows(cases), aside)
        if repaired:
            write_config(CONTROLS, repaired, aside)
        (aside / "README.md").write_text(task_card(cases, len(controls)), encoding="utf-8")


def write_config(config: str, rows: Sequence[InstanceRow], folder: Path) -> None:
    """Write one config of a release, ``config/test.parquet``, with its features in the file's metadata.

    Args:
        config: One of ``CONFIGS``, ``CONTROLS`` or ``PROBES``.
        rows: Its rows, of one record, which gives the columns; a suite that is not LIBERO's joins the column's names.
        folder: Folder of the release, without this config.
    """
    import pyarrow.parquet as pq
    from datasets import Dataset

    others = sorted({row.suite for row in rows} - set(SUITES))
    features = features_of(config, [*SUITES, *others], type(rows[0]) if rows else None)
    table = Dataset.from_list([plain_row(config, row) for row in rows], features=features).data.table
    file = folder / config / f"{SPLIT}.parquet"
    file.parent.mkdir(parents=True)
    pq.write_table(table, file)


def instance_row(instance: Instance, review: str, *, lite: bool = True) -> InstanceRow:
    """The row of an instance.

    Args:
        instance: The instance.
        review: What the column ``review`` holds for it.
        lite: Whether it belongs to the lite selection.
    """
    task = base_task(instance.suite, instance.base_task)
    return InstanceRow(
        **field_values(instance),
        reference_goal=json.dumps(task.goal),
        bddl_file=task.bddl_file,
        review=review,
        lite=lite,
        protocol_version=PROTOCOL_VERSION,
    )


def _conflict_rows(cases: Sequence[Case]) -> list[InstanceRow]:
    """Every case under every prompt condition, with its review."""
    standing = standing_verdicts(case_contents(cases), read_ledger())
    lite = lite_cases([conflict_instance(case, Prompt.P0) for case in cases])
    return [
        instance_row(
            conflict_instance(case, prompt), review_status(standing.get(case.case_id)), lite=case.case_id in lite
        )
        for case in cases
        for prompt in RELEASED
    ]


def _control_rows(cases: Sequence[Case], controls: Sequence[Control]) -> list[ControlRow]:
    """Every control under every prompt condition; nobody has read it."""
    by_id = {case.case_id: case for case in cases}
    for control in controls:
        if control.case_id not in by_id:
            raise NotFoundError(f"a control is of the case '{control.case_id}', which the release does not have")
    return [control_row(by_id[control.case_id], control, prompt) for control in controls for prompt in RELEASED]


def control_row(case: Case, control: Control, prompt: Prompt) -> ControlRow:
    """The row of a case's control under a prompt condition."""
    conflict, reference = conflict_instance(case, prompt), reference_instance(case, prompt)
    instance = control_instance(conflict, reference, plan=control.plan, instruction=control.instruction)
    before, after = conflict.instruction.split(), control.instruction.split()
    return ControlRow(
        **field_values(instance_row(instance, UNREVIEWED)),
        differing_words=_differing_words(before, after),
        case_word_count=len(before),
        control_word_count=len(after),
        repairs_to_base=control.repairs_to_base,
    )


def _differing_words(case: Sequence[str], control: Sequence[str]) -> tuple[WordsRow, ...]:
    """The longest runs of words that two instructions do not share, in order."""
    blocks = SequenceMatcher(None, case, control, autojunk=False).get_opcodes()
    return tuple(
        WordsRow(case=" ".join(case[a:b]), control=" ".join(control[c:d]))
        for kind, a, b, c, d in blocks
        if kind != "equal"
    )


def _reference_rows(cases: Sequence[Case]) -> list[InstanceRow]:
    """Every base task that has cases, under every prompt condition."""
    one_per_task = {case.task.task_id: case for case in cases}.values()
    return [instance_row(reference_instance(case, prompt), UNREVIEWED) for case in one_per_task for prompt in RELEASED]
