"""Results files: one evaluation of one policy as numbers, for the leaderboard; and the mark that it was verified.

A results file is data from a stranger. It is read with limits, every field is checked, unknown fields are refused, and
nothing in it says that it was verified: that is a file of its own, which only the leaderboard's keepers write.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...toolkit.errors import DatasetError, InvalidInputError, first_line
from ...toolkit.json_values import null_for_nan
from ...toolkit.records import Family, Level, Prompt
from ..analyses.tables.measures import measure_table
from ..measures import MEASURE_NAMES
from ..scores.scores import Scores
from ..statistics.intervals import Interval

RESULTS_VERSION = "1.0"
"""Layout of results and verification files."""

RESULTS_FOLDER = "results"
VERIFIED_FOLDER = "verified"

ALL = "all"
"""What a row's family or level is called where it covers all of them."""

LARGEST_FILE = 1 << 20
MOST_ENTRIES = 5_000
LONGEST_TEXT = {"policy_settings": 4_000}
"""Characters of a text field, where it is not ``USUAL_TEXT``."""

USUAL_TEXT = 300

LONGEST_REASON = 200
"""Characters that a message quotes of what another library says."""

SCRIPTED = "scripted agent"
KINDS = ("policy", SCRIPTED)
"""What was evaluated; scripted agents with known answers are marked as such."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """The measures over the pairs of one prompt condition, family and level.

    Attributes:
        prompt: ``P0`` or ``P1``.
        family: A conflict family, or ``all``.
        level: A level, or ``all``.
        n: Number of pairs.
        measures: By name, as fractions with their 95% intervals; NaN where undefined.
    """

    prompt: str
    family: str
    level: str
    n: int
    measures: Mapping[str, Interval]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One evaluation of one policy.

    Attributes:
        results_version: Layout.
        kind: One of ``KINDS``.
        policy_name: As recorded.
        policy_revision: As recorded.
        policy_settings: As recorded, JSON text.
        repo_id: Dataset with the rollouts on the Hub; empty where they are not there.
        commit: Its commit, 40 hexadecimal digits; empty likewise.
        rollouts_sha256: Hash of the recorded content that was scored.
        rollouts: Rollouts scored.
        protocol_version: Of the measures.
        tasks_version: Of the task release.
        conflictvla_version: That recorded the rollouts.
        mujoco_version: That simulated them.
        init_states: Initial states, sorted.
        seeds: Seeds, sorted.
        expected: Pairs that a complete evaluation has under each prompt condition; 0 for one that was not used.
        rows: The measures.
    """

    results_version: str
    kind: str
    policy_name: str
    policy_revision: str
    policy_settings: str
    repo_id: str
    commit: str
    rollouts_sha256: str
    rollouts: int
    protocol_version: str
    tasks_version: str
    conflictvla_version: str
    mujoco_version: str
    init_states: tuple[int, ...]
    seeds: tuple[int, ...]
    expected: Mapping[str, int]
    rows: tuple[ResultRow, ...]

    def row(self, prompt: str, family: str = ALL, level: str = ALL) -> ResultRow | None:
        """One row, or None where the evaluation has no such pairs."""
        return next((r for r in self.rows if (r.prompt, r.family, r.level) == (prompt, family, level)), None)

    def to_json(self) -> str:
        """The file's text, a row of measures a line; the same result gives the same bytes."""
        content = null_for_nan(asdict(self))
        rows = ",\n  ".join(json.dumps(row, allow_nan=False) for row in content.pop("rows"))
        head = json.dumps(content, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False)
        return f'{head.removesuffix("\n}")},\n "rows": [\n  {rows}\n ]\n}}\n'

    @property
    def file_name(self) -> str:
        """A name that says the policy and is no other evaluation's."""
        slug = re.sub(r"[^a-z0-9]+", "-", self.policy_name.lower()).strip("-")[:40] or "policy"
        return f"{slug}-{self.rollouts_sha256[:12]}.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was verified of a result, by which draw.

    Attributes:
        results_version: Layout.
        result_sha256: Hash of the results file.
        rollouts_sha256: Hash of the recorded content.
        replayed: Rollouts executed again.
        seed: Seed of their draw.
        mujoco_version: That executed them.
        problems: What was found wrong; a verified mark needs 0.
    """

    results_version: str
    result_sha256: str
    rollouts_sha256: str
    replayed: int
    seed: int
    mujoco_version: str
    problems: int

    def to_json(self) -> str:
        """The file's text."""
        return json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the leaderboard.

    Attributes:
        name: Name of its file without ending.
        sha256: Hash of its file.
        result: The result.
        verification: The verification whose hashes fit it, or None.
    """

    name: str
    sha256: str
    result: Result
    verification: Verification | None


def result_of(
    scores: Scores, *, expected: Mapping[str, int], repo_id: str = "", commit: str = "", kind: str = "policy"
) -> Result:
    """The results file of scored rollouts of one policy.

    Args:
        scores: Of exactly one policy.
        expected: Pairs of a complete evaluation, by prompt condition.
        repo_id: See ``Result``.
        commit: See ``Result``.
        kind: One of ``KINDS``.

    Raises:
        InvalidInputError: There are several policies, or no pairs.
    """
    if len(scores.policies) != 1:
        raise InvalidInputError(f"a result is of one policy, here are {', '.join(scores.policies) or 'no pairs'}")
    recorded = {entry.field: entry.values for entry in scores.provenance.recorded}
    return Result(
        results_version=RESULTS_VERSION,
        kind=kind,
        policy_name=recorded["policy_name"][0],
        policy_revision=recorded["policy_revision"][0],
        policy_settings=recorded["policy_settings"][0],
        repo_id=repo_id,
        commit=commit,
        rollouts_sha256=scores.provenance.rollouts_sha256,
        rollouts=scores.provenance.rollouts,
        protocol_version=scores.provenance.protocol_version,
        tasks_version=" ".join(recorded["tasks_version"]),
        conflictvla_version=" ".join(recorded["conflictvla_version"]),
        mujoco_version=" ".join(recorded["mujoco_version"]),
        init_states=tuple(sorted(set(scores.pairs["init_state"].to_pylist()))),
        seeds=tuple(sorted(set(scores.pairs["seed"].to_pylist()))),
        expected=dict(expected),
        rows=tuple(_rows(scores.pairs)),
    )


def _rows(pairs: pa.Table) -> list[ResultRow]:
    rows = []
    for prompt in Prompt:
        for family in (ALL, *Family):
            for level in (ALL, *Level):
                wanted = {"prompt": str(prompt), "family": str(family), "level": str(level)}
                chosen = pairs
                for column, value in wanted.items():
                    chosen = chosen if value == ALL else chosen.filter(pc.equal(chosen[column], value))
                if chosen.num_rows:
                    (row,) = measure_table(chosen, "overall").to_pylist()
                    measures = {
                        name: Interval(**{end: round(row[name + ending], 6) for end, ending in ENDINGS.items()})
                        for name in MEASURE_NAMES
                    }
                    rows.append(ResultRow(**wanted, n=row["n"], measures=measures))
    return rows


ENDINGS = {"value": "", "low": "_lo", "high": "_hi"}
"""Parts of an interval, and the endings of their columns in tables."""


def read_results(folder: Path, *, partial: bool = False) -> tuple[Entry, ...]:
    """Every entry of a leaderboard's folder, by name.

    Args:
        folder: With ``results/*.json`` and, where there are marks, ``verified/*.json``.
        partial: Leave files out that cannot be read, instead of raising.

    Raises:
        DatasetError: The folder or a file in it cannot be read as results.
    """
    files = sorted((folder / RESULTS_FOLDER).glob("*.json"))
    if not files:
        raise DatasetError(f"{folder}: holds no results/*.json")
    if len(files) > MOST_ENTRIES:
        raise DatasetError(f"{folder}: {len(files)} results, at most {MOST_ENTRIES} are read")
    marks = list(_readable(read_verification, sorted((folder / VERIFIED_FOLDER).glob("*.json")), partial=partial))
    by_hash = {mark.result_sha256: mark for _, mark in marks if not mark.problems}
    entries = []
    for file, result in _readable(read_result, files, partial=partial):
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        mark = by_hash.get(digest)
        fits = mark is not None and mark.rollouts_sha256 == result.rollouts_sha256
        entries.append(Entry(name=file.stem, sha256=digest, result=result, verification=mark if fits else None))
    if not entries:
        raise DatasetError(f"{folder}: none of its results can be read")
    return tuple(entries)


def _readable[T](read: Callable[[Path], T], files: Sequence[Path], *, partial: bool) -> Iterator[tuple[Path, T]]:
    for file in files:
        try:
            yield file, read(file)
        except DatasetError:
            if not partial:
                raise


def read_result(file: Path) -> Result:
    """Read and check a results file.

    Raises:
        DatasetError: It is none, is too large, or a field is not what it has to be.
    """
    content = _object(file)
    try:
        rows = tuple(_row(row) for row in _list(content.pop("rows"), 2 * 5 * 5))
        for name, kind in (("init_states", 1000), ("seeds", 1000)):
            content[name] = tuple(_whole(value) for value in _list(content[name], kind))
        expected = content["expected"]
        if not isinstance(expected, dict) or set(expected) != set(Prompt):
            raise ValueError("field 'expected' is no count by prompt condition")
        content["expected"] = {prompt: _whole(count) for prompt, count in expected.items()}
        content["rollouts"] = _whole(content["rollouts"])
        result = Result(**content, rows=rows)
        for field in fields(Result):
            if field.type == "str":
                _text(field.name, getattr(result, field.name))
        _check(result)
    except (KeyError, TypeError, ValueError) as error:
        raise DatasetError(
            f"{file}: not a results file: {first_line(error)[:LONGEST_REASON]}: write it with  conflictvla submit"
        ) from error
    return result


def read_verification(file: Path) -> Verification:
    """Read and check a verification file.

    Raises:
        DatasetError: It is none.
    """
    content = _object(file)
    try:
        for name in ("replayed", "seed", "problems"):
            content[name] = _whole(content[name])
        found = Verification(**content)
        for name in ("results_version", "result_sha256", "rollouts_sha256", "mujoco_version"):
            _text(name, getattr(found, name))
    except (KeyError, TypeError, ValueError) as error:
        raise DatasetError(
            f"{file}: not a verification: {first_line(error)[:LONGEST_REASON]}: write it with  conflictvla verify --out"
        ) from error
    return found


def _object(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise DatasetError(f"{file}: is larger than {LARGEST_FILE:,} bytes")
        content = json.loads(file.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, DatasetError):
            raise
        raise DatasetError(f"{file}: unreadable ({first_line(error)[:LONGEST_REASON]})") from error
    if not isinstance(content, dict):
        raise DatasetError(f"{file}: not a JSON object")
    return content


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _check(result: Result) -> None:
    if result.results_version != RESULTS_VERSION:
        raise ValueError(f"results_version is {result.results_version}, this version reads {RESULTS_VERSION}")
    if result.kind not in KINDS:
        raise ValueError(f"kind is none of {', '.join(KINDS)}")
    patterns = {"repo_id": r"(?:[\w.-]+/[\w.-]+)?", "commit": r"(?:[0-9a-f]{40})?", "rollouts_sha256": r"[0-9a-f]{64}"}
    for name, pattern in patterns.items():
        if not re.fullmatch(pattern, getattr(result, name)):
            raise ValueError(f"field '{name}' cannot be that")
    keys = [(row.prompt, row.family, row.level) for row in result.rows]
    if len(set(keys)) != len(keys):
        raise ValueError("two rows are of the same prompt condition, family and level")
    if not result.policy_name:
        raise ValueError("field 'policy_name' is empty")


def _row(content: Any) -> ResultRow:
    if not isinstance(content, dict):
        raise TypeError("a row is no object")
    row = ResultRow(**{**content, "n": _whole(content["n"]), "measures": _measures(content["measures"])})
    known = {"prompt": tuple(Prompt), "family": (ALL, *Family), "level": (ALL, *Level)}
    for name, values in known.items():
        if getattr(row, name) not in values:
            raise ValueError(f"a row's {name} is none of {', '.join(values)}")
    return row


def _measures(content: Any) -> dict[str, Interval]:
    if not isinstance(content, dict) or set(content) != set(MEASURE_NAMES):
        raise ValueError(f"a row's measures are not {', '.join(MEASURE_NAMES)}")
    found = {}
    for name, parts in content.items():
        if not isinstance(parts, dict) or set(parts) != set(ENDINGS):
            raise ValueError(f"{name} is not {', '.join(ENDINGS)}")
        found[name] = Interval(**{part: _fraction(name, value) for part, value in parts.items()})
        if math.isnan(found[name].value) and not (math.isnan(found[name].low) and math.isnan(found[name].high)):
            raise ValueError(f"{name} has an interval and no value")
    return found


def _fraction(name: str, value: Any) -> float:
    if value is None:
        return math.nan
    least = -1.0 if name == "dSR" else 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= 1.0:
        raise ValueError(f"{name} is {str(value)[:20]}, not within [{least:g}, 1]")
    return float(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 53:
        raise ValueError(f"{str(value)[:20]!r} is no count")
    return value


def _list(value: Any, most: int) -> Sequence[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise ValueError(f"a list is missing, or longer than {most}")
    return value


def fits(name: str, value: object) -> bool:
    """Whether a text can stand in that field of a results file: printable, and not too long."""
    return isinstance(value, str) and len(value) <= LONGEST_TEXT.get(name, USUAL_TEXT) and value.isprintable()


def _text(name: str, value: Any) -> None:
    if not fits(name, value):
        most = LONGEST_TEXT.get(name, USUAL_TEXT)
        raise ValueError(f"field '{name}' is no printable text of at most {most} characters")
