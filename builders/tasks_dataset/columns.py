"""Columns of a task release: the fields of ``Instance``, and what a release adds to an instance.

Features, rows and the way back follow from the records here, so that a field added to one is a column of the dataset.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from ...toolkit.records import SUITES, Arm, Instance, LanguageProbe
from ..record_fields import as_plain, field_hints, row_reader, without_none

if TYPE_CHECKING:
    from datasets import Features

CONFIGS = ("instances", "cases", "references")
CONTROLS = "controls"
"""A further config that a release may have: each case with its conflict repaired."""

PROBES = "probes"
"""A further config that a release may have: its instances under language probes."""

SPLIT = "test"


@dataclass(frozen=True, slots=True)
class Before:
    """Where a column stands that ``Instance`` has no field for: before this one."""

    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceRow(Instance):
    """An instance with what a release adds to it.

    Attributes:
        reference_goal: The base task's BDDL goal as JSON, a list of predicates.
        bddl_file: File name of the task's BDDL file within its suite.
        review: Who read the case and what they found, such as ``accept, stage 1, automated reading``.
        lite: Whether the case is in the lite selection (see ``builders.cases.lite``); every reference is.
        protocol_version: Version of the evaluation protocol.
    """

    reference_goal: Annotated[str, Before("horizon")]
    bddl_file: Annotated[str, Before("horizon")]
    review: Annotated[str, Before("tasks_version")]
    lite: Annotated[bool, Before("tasks_version")]
    protocol_version: Annotated[str, Before("language_probe")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubstitutionRow:
    """One word of a probe that stands for another.

    Attributes:
        slot: What the word does in the instruction, see ``toolkit.probes.substitution.Slot``.
        word: The word of the plan.
        substitute: The word in its place.
        relation: WordNet's relation between them.
        synset: The word's sense.
        substitute_synset: The substitute's sense.
    """

    slot: str
    word: str
    substitute: str
    relation: str
    synset: str
    substitute_synset: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRow(InstanceRow):
    """An instance under a language probe.

    Attributes:
        substitutions: As many as its level replaces.
        lexicon_version: Version of the lexicon that they come from.
    """

    substitutions: tuple[SubstitutionRow, ...]
    lexicon_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsRow:
    """Words of a case, and those in their place in its control; one of both may be empty."""

    case: str
    control: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRow(InstanceRow):
    """A case with its conflict repaired; ``case_id``, ``family``, ``level`` and ``operator`` are those of the case.

    Attributes:
        differing_words: Where the two instructions differ, in order.
        case_word_count: Words of the case's instruction.
        control_word_count: Words of this one.
        repairs_to_base: Whether the smallest repair is the base task's instruction, which this one then paraphrases.
    """

    differing_words: tuple[WordsRow, ...]
    case_word_count: int
    control_word_count: int
    repairs_to_base: bool


ROWS: dict[str, type[InstanceRow]] = {
    **dict.fromkeys(CONFIGS, InstanceRow),
    CONTROLS: ControlRow,
    PROBES: ProbeRow,
}
"""The record that a row of each config holds."""

FOLLOWING = frozenset({"arm"})
"""Fields without a column in any config: a row without ``case_id`` is a reference, one of a case without ``factors`` a
control."""

WITHOUT_COLUMN: dict[str, frozenset[str]] = {
    **dict.fromkeys((*CONFIGS, CONTROLS), FOLLOWING | {"language_probe"}),
    "cases": FOLLOWING | {"language_probe", "instance_id", "pair_id", "prompt", "prompt_text", "prompt_version"},
    PROBES: FOLLOWING,
}
"""Fields without a column, by config: only probes differ in their words, and a case has no prompt condition."""

INSTANCE_COLUMNS = tuple(name for name in field_hints(Instance) if name not in WITHOUT_COLUMN["instances"])
"""Columns that an ``Instance`` is read from, where it is under no probe."""


def columns_of(config: str, row: type[InstanceRow] | None = None) -> dict[str, Any]:
    """Type hint of each column of a config, in their order; ``row`` takes the place of the config's own record."""
    hints = field_hints(row or ROWS[config])
    columns = list(hints)
    for name, hint in hints.items():
        for place in get_args(hint) if get_origin(hint) is Annotated else ():
            if isinstance(place, Before):
                columns.remove(name)
                columns.insert(columns.index(place.column), name)
    return {name: hints[name] for name in columns if name not in WITHOUT_COLUMN[config]}


def features_of(config: str, suites: Sequence[str] = SUITES, row: type[InstanceRow] | None = None) -> Features:
    """Features of a config for the package ``datasets``.

    Args:
        config: One of ``CONFIGS``, ``CONTROLS`` or ``PROBES``.
        suites: Names that the column ``suite`` may hold.
        row: Takes the place of the config's own record.
    """
    from datasets import ClassLabel, Features

    features = Features({name: _feature(hint) for name, hint in columns_of(config, row).items()})
    features["suite"] = ClassLabel(names=list(suites))
    return features


def _feature(hint: Any, *, labels: bool = True) -> Any:
    """The feature of a field; enums are class labels in columns, and text in the records within one."""
    from datasets import ClassLabel, List, Value

    kind = without_none(hint)
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) is tuple:
        return List(_feature(get_args(kind)[0], labels=False))
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return {name: _feature(part, labels=False) for name, part in field_hints(kind).items()}
    if labels and issubclass(kind, StrEnum):
        return ClassLabel(names=list(kind))
    return Value("string" if issubclass(kind, str) else {bool: "bool", int: "int32", float: "float64"}[kind])


def plain_row(config: str, row: InstanceRow) -> dict[str, Any]:
    """A row as ``datasets`` takes it: a value for each column of the config."""
    return {name: as_plain(getattr(row, name)) for name in columns_of(config, type(row))}


def read_instance(row: Mapping[str, Any]) -> Instance:
    """The instance of a row by column, with names for class labels; ``language_probe`` may be missing."""
    of_case = Arm.CONFLICT if row["factors"] else Arm.CONTROL
    arm = Arm.REFERENCE if row["case_id"] is None else of_case
    return _read_row({"language_probe": LanguageProbe.W0, **row, "arm": arm})


_read_row = row_reader(Instance)
