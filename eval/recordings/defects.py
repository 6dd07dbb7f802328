"""Defects of recorded rollouts: raised at the first, or noted so that their episodes can be left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ...toolkit.errors import DatasetError


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """Something that is wrong with a recording.

    Attributes:
        file: File or folder.
        episode: Number of the episode within its dataset, and its rollout id where that is known; empty for a file
            that cannot be read.
        field: Column, frame feature or metadata field that is wrong; empty where it is the file.
        message: One line: what is wrong, where, what to do.
    """

    file: str
    episode: str
    field: str
    message: str

    def __str__(self) -> str:
        return self.message


@dataclass(slots=True, kw_only=True)
class Inspection:
    """What to do with the defects that are found while one dataset is read.

    Attributes:
        partial: False to raise at the first defect; True to note each and leave its episode out.
        defects: Those noted so far.
    """

    partial: bool = False
    defects: list[Defect] = field(default_factory=list)

    def report(self, defect: Defect, cause: Exception | None = None) -> None:
        """Note a defect, or raise it.

        Raises:
            DatasetError: Its message, unless ``partial``.
        """
        if not self.partial:
            raise DatasetError(defect.message) from cause
        self.defects.append(defect)


def defects_by_field(defects: Iterable[Defect]) -> dict[str, int]:
    """How many defects each field has, sorted; unreadable files count under ``file``."""
    return dict(sorted(Counter(defect.field or "file" for defect in defects).items()))
