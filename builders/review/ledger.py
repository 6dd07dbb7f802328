"""The review ledger: who read which case, what they found, and of which content; a changed case loses its verdict.

The ledger is one JSON array, an entry a line, beside the dataset cards. It only grows: a later verdict of a stage
replaces an earlier one, and stage 2 counts before stage 1.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from ...toolkit.atomic_files import write_atomic
from ...toolkit.errors import DatasetError, InvalidInputError

if TYPE_CHECKING:
    from ...toolkit.records import Factor
    from ..cases.case import Case

UNREVIEWED = "unreviewed"
STAGES = (1, 2)


class Verdict(StrEnum):
    """What a reader found: the case is sound, has to be looked at again, or must not be used."""

    ACCEPT = "accept"
    FLAG = "flag"
    REJECT = "reject"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewEntry:
    """One verdict.

    Attributes:
        case_id: The case.
        stage: 1 for the reading of every case, 2 for the second reading of flagged and sampled ones.
        verdict: What was found.
        reason: Why, in words; may be empty for an accepted case.
        reviewer: Who read it, as they wish to be named; an automated reading is named as one.
        content_sha256: Hash of what was read.
    """

    case_id: str
    stage: int
    verdict: Verdict
    reason: str
    reviewer: str
    content_sha256: str


def reviewed_content(instruction: str, factors: Sequence[Factor]) -> str:
    """Hash of what a reader judges: the words, and the premises with what is recorded as observed."""
    content = [instruction, *([f.family, f.premise, f.expected, f.observed] for f in factors)]
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()


def ledger_file() -> Path:
    """The ledger of the packaged tasks."""
    return Path(str(resources.files("conflictvla.dataset_cards"))) / "review_ledger.json"


def read_ledger(file: Path | None = None) -> tuple[ReviewEntry, ...]:
    """All entries in the order they were made; none where there is no ledger yet.

    Raises:
        DatasetError: The file is damaged.
    """
    file = file or ledger_file()
    if not file.is_file():
        return ()
    return parse_entries(file.read_bytes(), str(file))


def parse_entries(text: str | bytes, name: str) -> tuple[ReviewEntry, ...]:
    """Entries from the text of a ledger or of what a review sheet exports.

    Raises:
        DatasetError: The text is something else.
    """
    try:
        entries = []
        for number, entry in enumerate(json.loads(text)):
            made = ReviewEntry(**{**entry, "verdict": Verdict(entry["verdict"])})
            if made.stage not in STAGES:
                raise ValueError(f"entry {number} has stage {made.stage}, not 1 or 2")
            entries.append(made)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DatasetError(f"{name}: is no list of review verdicts ({error}); export it from the sheet anew") from error
    return tuple(entries)


def write_ledger(entries: Iterable[ReviewEntry], file: Path | None = None) -> None:
    """Write the ledger, an entry a line."""
    lines = ",\n".join(json.dumps(asdict(entry), ensure_ascii=False) for entry in entries)
    write_atomic(file or ledger_file(), f"[\n{lines}\n]\n" if lines else "[]\n")


def add_verdicts(entries: Sequence[ReviewEntry], contents: dict[str, str], file: Path | None = None) -> int:
    """Append verdicts to the ledger.

    Args:
        entries: New verdicts.
        contents: Hash of the present content of every case, by case id.
        file: The ledger; the packaged tasks' by default.

    Returns:
        How many were new.

    Raises:
        InvalidInputError: A verdict is on an unknown case, on other content than the case has now, or has no reviewer.
    """
    for entry in entries:
        if entry.case_id not in contents:
            raise InvalidInputError(f"verdict on '{entry.case_id}', which is no case of these tasks: nothing was read")
        if contents[entry.case_id] != entry.content_sha256:
            raise InvalidInputError(f"verdict on an earlier form of '{entry.case_id}': make a new sheet, read it again")
        if not entry.reviewer.strip():
            raise InvalidInputError(f"verdict on '{entry.case_id}' names no reviewer: fill in who read it")
    before = read_ledger(file)
    new = [entry for entry in entries if entry not in before]
    write_ledger((*before, *new), file)
    return len(new)


def standing_verdicts(contents: dict[str, str], entries: Sequence[ReviewEntry]) -> dict[str, ReviewEntry]:
    """The verdict that counts for each case that has one on its present content."""
    standing: dict[str, ReviewEntry] = {}
    for entry in sorted(entries, key=lambda entry: entry.stage):
        if contents.get(entry.case_id) == entry.content_sha256:
            standing[entry.case_id] = entry
    return standing


def review_status(entry: ReviewEntry | None) -> str:
    """The column ``review`` of a case, such as ``accept, stage 1, automated reading``."""
    return UNREVIEWED if entry is None else f"{entry.verdict}, stage {entry.stage}, {entry.reviewer}"


def case_contents(cases: Sequence[Case]) -> dict[str, str]:
    """Hash of the content of every case, by case id."""
    return {case.case_id: reviewed_content(case.candidate.instruction, case.candidate.factors) for case in cases}


def review_summary(cases: Sequence[Case], entries: Sequence[ReviewEntry]) -> str:
    """What was reviewed and what was not, in one sentence for the card."""
    standing = standing_verdicts(case_contents(cases), entries)
    counts = Counter(review_status(standing.get(case.case_id)) for case in cases)
    return "; ".join(f"{count} of {len(cases)} cases: {status}" for status, count in sorted(counts.items()))
