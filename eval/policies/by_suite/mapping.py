"""What a user writes to name one checkpoint a suite: ``libero_goal=lerobot:A,libero_10=lerobot:B``, or a YAML file."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ....toolkit.errors import InvalidInputError, NotFoundError, choices, first_line
from ....toolkit.libero.base_tasks import base_tasks
from ....toolkit.records import SUITES
from ..interface import PolicyInfo
from ..presets import with_preset
from ..spec import read_spec, safe_name, with_setting

YAML = (".yaml", ".yml")
"""How the name of a file with a mapping ends."""

FILE_KEYS = ("family", "name", "preset", "settings", "suites")
"""What a file may hold."""

LABELS = ("name", "family")
"""What a mapping on the command line may hold beside suites."""

_ENTRY = re.compile(r"\s*([\w.-]+)=")
_BETWEEN_ENTRIES = re.compile(r",(?=\s*[\w.-]+=)")
_SAFE_IN_SETTINGS = ":/.,@+-_"


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteMapping:
    """One policy a suite.

    Attributes:
        written: As the user wrote it, for messages.
        name: Name of the whole; None for the name that the policies of all suites share.
        family: Architecture family, or None.
        policies: What ``load_policy`` takes, by suite, sorted.
        members: What each of them was when the run began, by suite; empty until that is known.
    """

    written: str
    name: str | None
    family: str | None
    policies: Mapping[str, str]
    members: Mapping[str, PolicyInfo] = field(default_factory=dict)

    def text(self) -> str:
        """The mapping as ``load_policy`` reads it, also in another process or on another machine."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    def require_suites(self, suites: Collection[str]) -> None:
        """Make sure that there is a policy for each of these suites.

        Raises:
            InvalidInputError: One is missing.
        """
        missing = sorted(set(suites) - set(self.policies))
        if missing:
            raise InvalidInputError(
                f"policy '{self.written}': no policy for {', '.join(missing)}, of which cases are to be run; "
                f"add {missing[0]}=POLICY, or choose other cases"
            )


def is_mapping(text: str) -> bool:
    """Whether a policy's name is a mapping, or a file of one."""
    return text.startswith("{") or text.endswith(YAML) or _ENTRY.match(text) is not None


def read_mapping(text: str, preset: str | None = None) -> SuiteMapping:
    """Read a mapping from suites to policies.

    Args:
        text: ``SUITE=POLICY,SUITE=POLICY``, where ``name=NAME`` and ``family=FAMILY`` may stand too; a YAML file's
            path; or what ``SuiteMapping.text`` gave.
        preset: Settings of a published model for the policy of each suite.

    Raises:
        InvalidInputError: It is no such mapping.
        NotFoundError: There is no such file, suite, preset or key.
    """
    if text.startswith("{"):
        return _read_text(text)
    mapping = _read_file(Path(text), preset) if text.endswith(YAML) else _read_entries(text, preset)
    if mapping.name is not None and safe_name(mapping.name) != mapping.name:
        raise InvalidInputError(f"policy '{text}': name={mapping.name}: use letters, digits, '-', '_', '.'")
    if not mapping.policies:
        raise InvalidInputError(
            f"policy '{text}': it names no suite; write SUITE=POLICY, such as {SUITES[0]}=lerobot:A"
        )
    for suite, policy in mapping.policies.items():
        _check_suite(suite, text)
        if is_mapping(policy):
            raise InvalidInputError(f"policy '{text}': {suite} is a mapping itself; give one policy for it")
    return mapping


def _read_text(text: str) -> SuiteMapping:
    try:
        content = json.loads(text)
        members = {suite: PolicyInfo(**info) for suite, info in content.pop("members").items()}
        return SuiteMapping(**content, members=members)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidInputError(
            f"policy '{text:.60}': write SUITE=POLICY,SUITE=POLICY or a YAML file's path ({first_line(error)})"
        ) from error


def _read_entries(text: str, preset: str | None) -> SuiteMapping:
    found: dict[str, str] = {}
    for entry in _BETWEEN_ENTRIES.split(text):
        key, _, value = (part.strip() for part in entry.partition("="))
        if key in found:
            raise InvalidInputError(f"policy '{text}': {key} is given twice")
        if not value:
            raise InvalidInputError(f"policy '{text}': nothing is given for {key}")
        found[key] = value
    name, family = (found.pop(label, None) for label in LABELS)
    return SuiteMapping(written=text, name=name, family=family, policies=_with_settings(found, preset, {}, text))


def _read_file(file: Path, preset: str | None) -> SuiteMapping:
    content = _read_yaml(file)
    for key in content:
        if key not in FILE_KEYS:
            raise NotFoundError(f"{file}: no key '{key}' of a policy: {choices(str(key), list(FILE_KEYS))}")
    suites, settings = _part(content, "suites", file), _part(content, "settings", file)
    for suite, policy in suites.items():
        if not isinstance(policy, str):
            raise InvalidInputError(f"{file}: suites: {suite}: write the policy as on the command line")
    texts = {key: content.get(key) for key in (*LABELS, "preset")}
    for key, value in texts.items():
        if value is not None and not isinstance(value, str):
            raise InvalidInputError(f"{file}: {key}: {value!r} is no text; put it in quotes")
    if preset is not None and texts["preset"] not in (None, preset):
        raise InvalidInputError(f"{file}: preset: {texts['preset']}, and --preset {preset}: give one of them")
    return SuiteMapping(
        written=str(file),
        name=texts["name"],
        family=texts["family"],
        policies=_with_settings(suites, preset or texts["preset"], settings, str(file)),
    )


def _read_yaml(file: Path) -> dict[str, Any]:
    import yaml

    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise NotFoundError(f"policy '{file}': no such file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{file}: cannot be read ({first_line(error)})") from error
    try:
        content = yaml.safe_load(text)
        _refuse_repeated_keys(yaml.compose(text, yaml.SafeLoader), file)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise InvalidInputError(f"{file}{line}: not YAML ({getattr(error, 'problem', None) or error})") from error
    if not isinstance(content, dict) or "suites" not in content:
        raise InvalidInputError(f"{file}: write  suites:  and below it a line  SUITE: POLICY  for each suite")
    return content


def _refuse_repeated_keys(node: Any, file: Path) -> None:
    """YAML's loader takes the last of two equal keys, and so another checkpoint than the user may think."""
    if node is None or not isinstance(node.value, list):
        return
    keys = [key.value for key, _ in node.value] if node.id == "mapping" else []
    for key in keys:
        if keys.count(key) > 1:
            raise InvalidInputError(f"{file}: {key} is given twice")
    for child in node.value:
        _refuse_repeated_keys(child[1] if isinstance(child, tuple) else child, file)


def _part(content: Mapping[str, Any], key: str, file: Path) -> dict[str, Any]:
    part = content.get(key, {})
    if not isinstance(part, dict):
        raise InvalidInputError(f"{file}: {key}: write a line  NAME: VALUE  for each")
    return {str(name): value for name, value in part.items()}


def _with_settings(
    policies: Mapping[str, str], preset: str | None, settings: Mapping[str, Any], where: str
) -> dict[str, str]:
    """The policies with the settings that are for all of them; a policy's own come first, a preset's last."""
    found = {}
    for suite, policy in sorted(policies.items()):
        own = read_spec(policy).settings
        spec = policy
        for name, value in settings.items():
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise InvalidInputError(f"{where}: settings: {name}: {value!r} is neither text nor a number")
            if name not in own:
                spec = with_setting(spec, quote(name), quote(str(value), safe=_SAFE_IN_SETTINGS))
        found[suite] = spec if preset is None else with_preset(spec, preset)
    return found


def _check_suite(suite: str, where: str) -> None:
    if suite in SUITES:
        return
    try:
        base_tasks(suite)
    except NotFoundError as error:
        raise NotFoundError(f"policy '{where}': {error}") from error
