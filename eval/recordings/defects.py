"""Defects of recorded rollouts: refused at the first, or noted so that the episodes they spoil can be left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ...toolkit.errors import DatasetError


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """One thing that is wrong with a recording.

    Attributes:
        file: File or folder.
        episode: Number of the episode within its dataset, and its rollout id where that is known; empty where a whole
            file is unreadable.
        field: Column, frame feature or metadata field; empty where none is to blame.
        message: The whole line: what is wrong, where, what to do.
    """

    file: str
    episode: str
    field: str
    message: str

    def __str__(self) -> str:
        return self.message


@dataclass(slots=True, kw_only=True)
class Inspection:
    """What becomes of the defects found while one dataset is read.

    Attributes:
        partial: False to raise at the first defect; True to note each and leave its episode out.
        defects: Those noted so far.
    """

    partial: bool = False
    defects: list[Defect] = field(default_factory=list)

    def found(self, defect: Defect, cause: Exception | None = None) -> None:
        """Take a defect.

        Raises:
            DatasetError: Its message, unless ``partial``.
        """
        if not self.partial:
            raise DatasetError(defect.message) from cause
        self.defects.append(defect)


def defects_by_field(defects: Iterable[Defect]) -> dict[str, int]:
    """How many defects each field has, sorted; unreadable files count under ``file``."""
    return dict(sorted(Counter(defect.field or "file" for defect in defects).items()))
