"""A user's own prompt conditions, read from a YAML or JSON file: names, each with its words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from .errors import InvalidInputError, first_line
from .prompts import BUILT_IN, PLACE, PROMPT_NAME, PromptCondition, prompt_sha256

FIELDS = ("text", "version")
"""What may be given of a condition; ``text`` must be."""

TAKEN = re.compile(r"[WV]\d|reference|(?:init|seed)\d+", re.IGNORECASE)
"""Names that mean something else where they stand in an id."""

LONGEST_WORDING = 4000
"""Characters: far more than any policy reads."""

LONGEST_VERSION = 40


def read_prompts_file(path: Path | str) -> tuple[PromptCondition, ...]:
    """The prompt conditions of a file, in its order.

    The file maps each name to its text, or to ``text`` and ``version``. In a text ``{instruction}`` stands for the
    instruction; a text without it is put before the instruction. A hash of the wording is the version, or the end of a
    given one, so that changed words are never taken for the same.

    Raises:
        InvalidInputError: The file cannot be read, or a condition cannot be used; one line with its name.
    """
    path = Path(path)
    conditions = [_condition(name, given, path) for name, given in _entries(path)]
    if not conditions:
        raise InvalidInputError(f"{path}: holds no prompts; write some as  name: text")
    wordings = {known.wording: known.name for known in BUILT_IN.values()}
    names: dict[str, str] = {}
    for condition in conditions:
        if condition.name.lower() in names:
            raise _unusable(path, condition.name, f"has the same name as '{names[condition.name.lower()]}'")
        if condition.wording in wordings:
            raise _unusable(path, condition.name, f"has the same wording as '{wordings[condition.wording]}'")
        names[condition.name.lower()] = wordings[condition.wording] = condition.name
    return tuple(conditions)


def _entries(path: Path) -> list[tuple[Any, Any]]:
    """The file's names and what stands behind each, as YAML's nodes; JSON is YAML too. No value is constructed."""
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), yaml.SafeLoader)
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path}: is not UTF-8 text") from error
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InvalidInputError(f"{path}{line}: is neither YAML nor JSON ({error.problem})") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise InvalidInputError(f"{path}: is neither YAML nor JSON ({first_line(error)})") from error
    if root is None or root.value == "":
        return []
    if not isinstance(root, yaml.MappingNode):
        raise InvalidInputError(f"{path}: is no list of prompts; write each as  name: text")
    return list(root.value)


def _text(node: Any) -> str:
    """What is written at a node; empty where it is nothing, a list or a mapping."""
    is_text = isinstance(node, yaml.ScalarNode) and not node.tag.endswith(":null")
    return node.value.strip() if is_text else ""


def _condition(key: Any, given: Any, path: Path) -> PromptCondition:
    """One condition of the file.

    Raises:
        InvalidInputError: Its name, text or version cannot be used.
    """
    name = _checked_name(_text(key), path)
    fields = [(FIELDS[0], _text(given))]
    if isinstance(given, yaml.MappingNode):
        fields = [(_text(field), _text(value)) for field, value in given.value]
    for field, _ in fields:
        if field not in FIELDS:
            raise _unusable(path, name, f"has an unknown field '{field}' (known: {', '.join(FIELDS)})")
    values = dict(fields)
    if len(values) < len(fields):
        raise _unusable(path, name, "has a field twice")
    text = values.get("text", "")
    for complaint in _complaints(text, values.get("version")):
        raise _unusable(path, name, complaint)
    wording = text if PLACE in text else f"{text} {PLACE}"
    digest = prompt_sha256(wording)[:8]
    version = f"{values['version']}+{digest}" if "version" in values else digest
    return PromptCondition(name=name, version=version, wording=wording)


def _checked_name(name: str, path: Path) -> str:
    if not PROMPT_NAME.fullmatch(name):
        rule = "a name is a letter, then letters, digits, _ and - only, at most 40"
        raise InvalidInputError(f"{path}: {name[:60]!r} cannot be the name of a prompt: {rule}")
    if name.lower() in {known.lower() for known in BUILT_IN}:
        raise _unusable(path, name, f"has a name that is taken ({', '.join(BUILT_IN)}); choose another")
    if TAKEN.fullmatch(name):
        raise _unusable(path, name, "has a name that means something else in an id; choose another")
    return name


def _complaints(text: str, version: str | None) -> Iterator[str]:
    """What is wrong with a condition's text and version."""
    if not text:
        yield "has no text"
    elif text == PLACE:
        yield f"changes nothing: its text is {PLACE} alone, which is P0"
    elif text.count(PLACE) > 1:
        yield f"has {PLACE} more than once"
    elif len(text) > LONGEST_WORDING:
        yield f"is {len(text)} characters long, at most {LONGEST_WORDING} are read"
    elif found := re.search(r"\{\w*\}", text.replace(PLACE, "")):
        yield f"has an unknown place '{found[0]}', the only one is {PLACE}"
    elif not text.replace("\n", "").isprintable():
        yield "has characters that cannot be printed"
    if version is not None and not (version and version.isprintable() and len(version) <= LONGEST_VERSION):
        yield f"has a version that is empty, cannot be printed or is longer than {LONGEST_VERSION} characters"


def _unusable(path: Path, name: str, why: str) -> InvalidInputError:
    return InvalidInputError(f"{path}: prompt '{name}' {why}")
