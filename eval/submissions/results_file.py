"""Results and verification files: read, checked, written.

A results file is untrusted. It is read with limits, every field is checked, and unknown fields are refused. Nothing in
it marks it as verified: that is a file of its own, which only the leaderboard's maintainers write.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path

from ...toolkit.errors import DatasetError
from ...toolkit.json_values import null_for_nan
from ...toolkit.prompts import BUILT_IN
from ...toolkit.records import Family, Level
from ..measures import MEASURE_NAMES
from ..statistics.intervals import Interval
from .coverage import COVERAGES, Coverage
from .results import ALL, INTERVAL_ENDINGS, KINDS, RESULTS_VERSION, Entry, Result, ResultRow, Verification
from .untrusted.json_files import FieldError, JsonObject, read_json_object
from .untrusted.limits import LONGEST_SETTINGS

RESULTS_FOLDER = "results"
VERIFIED_FOLDER = "verified"

MOST_ENTRIES = 5_000
MOST_REPEATS = 1_000
"""Initial states, or seeds, of an evaluation."""

MOST_ROWS = len(BUILT_IN) * (1 + len(Family)) * (1 + len(Level))

PATTERNS = {
    "policy_name": (r".+", "is empty"),
    "repo_id": (r"(?:[\w.-]+/[\w.-]+)?", "is not OWNER/NAME"),
    "commit": (r"(?:[0-9a-f]{40})?", "is not a commit of 40 hexadecimal digits"),
    "rollouts_sha256": (r"[0-9a-f]{64}", "is not a hash of 64 hexadecimal digits"),
}
"""What some texts of a results file match, and what is wrong where they do not."""


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
    marks = _read_all(read_verification, sorted((folder / VERIFIED_FOLDER).glob("*.json")), partial=partial)
    by_hash = {mark.result_sha256: mark for _, mark in marks if not mark.problems}
    entries = []
    for file, result in _read_all(read_result, files, partial=partial):
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        mark = by_hash.get(digest)
        fits = mark is not None and mark.rollouts_sha256 == result.rollouts_sha256
        entries.append(Entry(name=file.stem, result=result, verification=mark if fits else None))
    if not entries:
        raise DatasetError(f"{folder}: none of its results can be read")
    return tuple(entries)


def read_result(file: Path) -> Result:
    """Read and check a results file.

    Raises:
        DatasetError: It is none, is too large, or a field is not what it has to be.
    """
    content = read_json_object(file)
    try:
        return _result(content)
    except FieldError as error:
        raise DatasetError(f"{file}: not a results file: {error}: write it with  conflictvla submit") from error


def read_verification(file: Path) -> Verification:
    """Read and check a verification file.

    Raises:
        DatasetError: It is none.
    """
    content = read_json_object(file)
    try:
        return _verification(content)
    except FieldError as error:
        raise DatasetError(f"{file}: not a verification: {error}: write it with  conflictvla verify --out") from error


def result_json(result: Result) -> str:
    """The text of a results file, a row of measures a line; the same result gives the same bytes."""
    content = null_for_nan(asdict(result))
    rows = ",\n  ".join(json.dumps(row, allow_nan=False) for row in content.pop("rows"))
    head = json.dumps(content, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False)
    return f'{head.removesuffix("\n}")},\n "rows": [\n  {rows}\n ]\n}}\n'


def verification_json(verification: Verification) -> str:
    """The text of a verification file."""
    return json.dumps(asdict(verification), indent=1, sort_keys=True) + "\n"


def _read_all[T](read: Callable[[Path], T], files: Sequence[Path], *, partial: bool) -> Iterator[tuple[Path, T]]:
    for file in files:
        try:
            yield file, read(file)
        except DatasetError:
            if not partial:
                raise


def _names(record: type[Result | ResultRow | Coverage | Verification]) -> list[str]:
    return [field.name for field in fields(record)]


def _result(content: JsonObject) -> Result:
    version = content.text("results_version")
    if version != RESULTS_VERSION:
        raise FieldError(f"results_version is {version}, this version reads {RESULTS_VERSION}")
    content.check_fields(_names(Result))
    result = Result(
        results_version=version,
        kind=content.choice("kind", KINDS),
        policy_name=content.text("policy_name"),
        policy_revision=content.text("policy_revision"),
        policy_settings=content.text("policy_settings", LONGEST_SETTINGS),
        repo_id=content.text("repo_id"),
        commit=content.text("commit"),
        rollouts_sha256=content.text("rollouts_sha256"),
        rollouts=content.count("rollouts"),
        protocol_version=content.text("protocol_version"),
        tasks_version=content.text("tasks_version"),
        conflictvla_version=content.text("conflictvla_version"),
        mujoco_version=content.text("mujoco_version"),
        init_states=content.counts("init_states", MOST_REPEATS),
        seeds=content.counts("seeds", MOST_REPEATS),
        coverage=_coverage(content.object("coverage")),
        rows=tuple(map(_row, content.objects("rows", MOST_ROWS))),
    )
    for name, (pattern, wrong) in PATTERNS.items():
        if not re.fullmatch(pattern, getattr(result, name)):
            raise FieldError(f"field '{name}' {wrong}")
    if not result.rows:
        raise FieldError("field 'rows' is empty")
    keys = [(row.prompt, row.family, row.level) for row in result.rows]
    if len(set(keys)) != len(keys):
        raise FieldError("two rows are of the same prompt condition, family and level")
    return result


def _coverage(content: JsonObject) -> Coverage:
    content.check_fields(_names(Coverage))
    coverage = Coverage(
        kind=content.choice("kind", COVERAGES), rollouts=content.count("rollouts"), of=content.count("of")
    )
    if coverage.rollouts > coverage.of:
        raise FieldError("field 'coverage.rollouts' is more than a full evaluation has")
    return coverage


def _row(content: JsonObject) -> ResultRow:
    content.check_fields(_names(ResultRow))
    measures = content.object("measures")
    measures.check_fields(MEASURE_NAMES)
    has_effect = content.values["premise_effect"] is not None
    row = ResultRow(
        prompt=content.choice("prompt", tuple(BUILT_IN)),
        family=content.choice("family", (ALL, *Family)),
        level=content.choice("level", (ALL, *Level)),
        n=content.count("n"),
        measures={name: _interval(name, measures.object(name)) for name in measures.values},
        response=_interval("response", content.object("response")),
        capable=content.count("capable"),
        premise_effect=_interval("premise_effect", content.object("premise_effect")) if has_effect else None,
        controls=content.count("controls"),
        effect_tasks=content.count("effect_tasks"),
    )
    if not row.effect_tasks <= row.controls <= row.n:
        raise FieldError("effect_tasks is more than controls, or controls more than n")
    if has_effect != bool(row.controls):
        raise FieldError("premise_effect is null where controls were run, or is there without them")
    return row


def _interval(measure: str, content: JsonObject) -> Interval:
    content.check_fields(INTERVAL_ENDINGS)
    least = -1.0 if measure in ("dSR", "premise_effect") else 0.0
    interval = Interval(**{part: content.fraction(part, least) for part in INTERVAL_ENDINGS})
    if math.isnan(interval.value) and not (math.isnan(interval.low) and math.isnan(interval.high)):
        raise FieldError(f"{measure} has an interval and no value")
    return interval


def _verification(content: JsonObject) -> Verification:
    content.check_fields(_names(Verification))
    return Verification(
        results_version=content.text("results_version"),
        result_sha256=content.text("result_sha256"),
        rollouts_sha256=content.text("rollouts_sha256"),
        replayed=content.count("replayed"),
        seed=content.count("seed"),
        mujoco_version=content.text("mujoco_version"),
        problems=content.count("problems"),
    )
