"""What scores were computed from, and by what."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version

import pyarrow as pa

from ...builders.rollouts.episode_record import VERSION_FIELDS
from ...toolkit.records import PROTOCOL_VERSION, Arm
from .pairs import RUN_FIELDS

RECORDED_FIELDS = ("policy_name", *RUN_FIELDS, *VERSION_FIELDS)
"""Episode fields whose distinct values are written with the scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Distinct values of an episode field over all the rollouts."""

    field: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What the scores were computed from, and by what. Holds no path and no time.

    Attributes:
        protocol_version: Version of the measures.
        scored_with: Version of this package.
        rollouts_sha256: Hash of the recorded content, independent of files and their order.
        rollouts: Rollouts read, of all arms; those left out for a defect not counted.
        references: Reference rollouts read.
        conflicts: Conflict rollouts read; each is in a pair or refused.
        unused_references: Reference rollouts in no pair.
        scenes: Distinct scenes, by their hashes.
        recorded: Versions, policies and seeds found in the rollouts.
        controls: Control rollouts read; each is in a pair or refused.
    """

    protocol_version: str
    scored_with: str
    rollouts_sha256: str
    rollouts: int
    references: int
    conflicts: int
    unused_references: int
    scenes: int
    recorded: tuple[Recorded, ...]
    controls: int = 0


def provenance_of(episodes: pa.Table, digests: Iterable[bytes], unused_references: int) -> Provenance:
    """Sum up the episodes that were read.

    Args:
        episodes: With ``arm``, ``scene_sha256`` and ``RECORDED_FIELDS``.
        digests: Of the rollouts, in any order.
        unused_references: Reference rollouts in no pair.
    """
    arms = episodes["arm"].to_pylist()
    recorded = tuple(
        Recorded(field=name, values=tuple(str(value) for value in sorted(set(episodes[name].to_pylist()))))
        for name in RECORDED_FIELDS
    )
    return Provenance(
        protocol_version=PROTOCOL_VERSION,
        scored_with=version("conflictvla"),
        rollouts_sha256=hashlib.sha256(b"".join(sorted(digests))).hexdigest(),
        rollouts=len(arms),
        references=arms.count(Arm.REFERENCE),
        conflicts=arms.count(Arm.CONFLICT),
        unused_references=unused_references,
        scenes=len(set(episodes["scene_sha256"].to_pylist())),
        recorded=recorded,
        controls=arms.count(Arm.CONTROL),
    )
