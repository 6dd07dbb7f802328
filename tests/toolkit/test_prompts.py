"""The built-in prompt conditions, and a user's own from a file: what is read, and what is refused in one line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from conflictvla.toolkit.errors import InvalidInputError
from conflictvla.toolkit.prompts import BUILT_IN, PLACE, PLACEBO, PREMISE_CHECK, RELEASED, prompt_sha256
from conflictvla.toolkit.prompts_file import LONGEST_WORDING, read_prompts_file
from conflictvla.toolkit.records import Prompt

INSTRUCTION = "turn on the stove"

OWN = """\
# Wordings of our own.
careful: look twice, then
polite:
  version: 2
  text: please {instruction}, if you can
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "prompts.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_p0_is_the_instruction_alone_and_the_others_put_words_before_it() -> None:
    assert tuple(BUILT_IN) == tuple(Prompt)
    assert BUILT_IN[Prompt.P0].text(INSTRUCTION) == INSTRUCTION
    for prompt in (Prompt.P1, Prompt.PLACEBO):
        text = BUILT_IN[prompt].text(INSTRUCTION)
        assert text.endswith(f". task: {INSTRUCTION}")
        assert text == text.lower()
    assert PREMISE_CHECK.wording.startswith(
        "before acting, check whether everything this task takes for granted is true"
    )
    assert Prompt.PLACEBO not in RELEASED


def test_the_placebo_is_as_long_as_the_premise_check_and_asks_for_nothing() -> None:
    check, placebo = PREMISE_CHECK.text(""), PLACEBO.text("")

    assert len(placebo.split()) == len(check.split())
    assert abs(len(placebo) - len(check)) <= 0.02 * len(check)
    assert [mark for mark in placebo if not (mark.isalpha() or mark == " ")] == list(",,;.:")
    asking = {"check", "if", "not", "do", "keep", "still", "before", "please", "must", "should", "stop", "ignore"}
    assert not asking & set(re.findall(r"\w+", placebo))


def test_a_text_without_a_place_is_put_before_the_instruction(tmp_path: Path) -> None:
    careful, polite = read_prompts_file(written(tmp_path, OWN))

    assert (careful.name, careful.wording) == ("careful", f"look twice, then {PLACE}")
    assert careful.text(INSTRUCTION) == "look twice, then turn on the stove"
    assert careful.version == prompt_sha256(careful.wording)[:8]
    assert polite.text(INSTRUCTION) == "please turn on the stove, if you can"
    assert polite.version == f"2+{prompt_sha256(polite.wording)[:8]}"


def test_json_is_read_alike(tmp_path: Path) -> None:
    content = {"careful": "look twice, then ", "polite": {"text": "please {instruction}, if you can", "version": "2"}}
    file = written(tmp_path, json.dumps(content, indent=2))

    assert read_prompts_file(file) == read_prompts_file(written(tmp_path, OWN))


def test_other_words_under_the_same_name_and_version_are_another_version(tmp_path: Path) -> None:
    (before,) = read_prompts_file(written(tmp_path, "a: {text: look twice, version: 1}"))
    (after,) = read_prompts_file(written(tmp_path, "a: {text: look thrice, version: 1}"))

    assert before.version != after.version


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no prompts; write some as  name: text"),
        ("{}", "holds no prompts"),
        ("careful", "is no list of prompts; write each as  name: text"),
        ("- careful: look", "is no list of prompts"),
        ("a: b: c", "line 1: is neither YAML nor JSON (mapping values are not allowed here)"),
        ("a: !!python/object/apply:os.getcwd []", "prompt 'a' has no text"),
        ("P1: look twice", "prompt 'P1' has a name that is taken (P0, P1, placebo); choose another"),
        ("Placebo: look twice", "prompt 'Placebo' has a name that is taken"),
        ("W2: look twice", "prompt 'W2' has a name that means something else in an id; choose another"),
        ("init0: look twice", "prompt 'init0' has a name that means something else in an id"),
        ("a/b: look twice", "'a/b' cannot be the name of a prompt: a name is a letter, then letters, digits, _ and -"),
        ("a,b: look twice", "'a,b' cannot be the name"),
        ("'': look twice", "'' cannot be the name"),
        ("é: look twice", "'é' cannot be the name"),
        (f"{'a' * 41}: look twice", "cannot be the name of a prompt"),
        ("? [a]\n: look twice", "'' cannot be the name"),
        ("a:", "prompt 'a' has no text"),
        ("a: null", "prompt 'a' has no text"),
        ("a: '  '", "prompt 'a' has no text"),
        ("a: [look, twice]", "prompt 'a' has no text"),
        ("a: {version: '1'}", "prompt 'a' has no text"),
        ("a: ' {instruction} '", "prompt 'a' changes nothing: its text is {instruction} alone, which is P0"),
        ("a: look at {instruction} and {instruction}", "prompt 'a' has {instruction} more than once"),
        ("a: look at {task}", "prompt 'a' has an unknown place '{task}', the only one is {instruction}"),
        ("a: {text: look, words: twice}", "prompt 'a' has an unknown field 'words' (known: text, version)"),
        ("a: {text: look, text: twice}", "prompt 'a' has a field twice"),
        ("a: {text: look, version: ''}", "prompt 'a' has a version that is empty"),
        ('a: "look\\u0007"', "prompt 'a' has characters that cannot be printed"),
        (f"a: {'x' * (LONGEST_WORDING + 1)}", "is 4001 characters long, at most 4000 are read"),
        ("a: look\nb: 'look '", "prompt 'b' has the same wording as 'a'"),
        ("a: look\nA: twice", "prompt 'A' has the same name as 'a'"),
        (f"a: '{PLACEBO.wording}'", "prompt 'a' has the same wording as 'placebo'"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line_with_its_name(tmp_path: Path, text: str, message: str) -> None:
    file = written(tmp_path, text)

    with pytest.raises(InvalidInputError) as caught:
        read_prompts_file(file)

    assert str(caught.value).startswith(str(file))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_prompts_file(tmp_path / "nowhere.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"a: caf\xe9")
    with pytest.raises(InvalidInputError, match="is not UTF-8 text"):
        read_prompts_file(tmp_path / "latin.yaml")
