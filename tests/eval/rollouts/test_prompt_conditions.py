"""A run under the placebo and under wordings of one's own: handed to the policy, recorded, scored and shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.evaluate import evaluate
from conflictvla.eval.policies.interface import Episode
from conflictvla.eval.policies.scripted.agents import Refuse
from conflictvla.eval.recordings.reading import read_rollouts
from conflictvla.eval.run_selection import RunSelection
from conflictvla.toolkit.errors import InvalidInputError, NotFoundError
from conflictvla.toolkit.prompts import PLACEBO, PREMISE_CHECK, prompt_sha256
from conflictvla.toolkit.records import Arm, Instance

from ..in_process import conflictvla

TASK = "libero_goal/turn_on_the_stove"
CASE = next(i for i in load_instances() if f"{i.suite}/{i.base_task}" == TASK and i.arm is Arm.CONFLICT)
OTHER_CASE = next(i for i in load_instances() if i.suite == "libero_spatial" and i.arm is Arm.CONFLICT)


class Listening(Refuse):
    """Refuses conflicts, and notes each exact prompt."""

    name = "listening"

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def reset(self, episode: Episode) -> None:
        self.heard.append(episode.instruction)
        super().reset(episode)


@pytest.fixture(scope="module")
def prompts_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("prompts") / "mine.yaml"
    file.write_text('careful: "look twice, then"\npolite: {text: "please {instruction} now", version: 3}\n')
    return file


@pytest.fixture(scope="module")
def run_out(tmp_path_factory: pytest.TempPathFactory, prompts_file: Path) -> Path:
    out = tmp_path_factory.mktemp("run") / "out"
    chosen = ("--prompts", "P0,placebo,polite", "--prompts-file", prompts_file)
    case = ("--cases", str(CASE.case_id), "--init-states", "0")
    done = conflictvla("run", "--policy", "refuse", *chosen, *case, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "6 rollouts" in done.stdout
    return out


def test_cases_and_references_are_recorded_with_name_version_and_words(run_out: Path) -> None:
    records = {record.instance_id: record for record in read_rollouts(run_out / "rollouts/refuse").records()}

    assert set(records) == {
        f"{stem}/{prompt}" for stem in (f"{TASK}/reference", CASE.case_id) for prompt in ("P0", "placebo", "polite")
    }
    for record in records.values():
        expected = {"P0": "{}", "placebo": PLACEBO.text("{}"), "polite": "please {} now"}[record.prompt]
        assert record.prompt_text == expected.format(record.instruction)
        assert record.prompt_sha256 == prompt_sha256(record.prompt_text)
        assert record.pair_id == f"{TASK}/reference/{record.prompt}"
    assert records[f"{CASE.case_id}/placebo"].prompt_version == PLACEBO.version
    assert records[f"{CASE.case_id}/polite"].prompt_version == f"3+{prompt_sha256('please {instruction} now')[:8]}"


def test_the_pairs_are_scored_and_ones_own_words_are_named(run_out: Path, tmp_path: Path) -> None:
    scored = conflictvla("score", run_out, "--by", "prompt")
    assert scored.returncode == 0, scored.stderr
    assert "3 pairs scored" in scored.stdout
    assert [word for word in scored.stdout.split() if word in ("P0", "placebo", "polite")] == [
        "P0",
        "placebo",
        "polite",
    ]
    (warning,) = scored.stderr.strip().splitlines()
    assert warning.startswith("warning: the prompt is in words that no task release has (polite 3+")
    assert warning.endswith(f"in 2 rollouts, the first of {CASE.case_id}/polite")

    effect = conflictvla("score", run_out, "--by", "prompt-effect")
    assert "placebo" in effect.stdout
    assert "polite" in effect.stdout

    reported = conflictvla("report", run_out, "--out", tmp_path / "report.html", "--figures", tmp_path / "figures")
    assert reported.returncode == 0, reported.stderr
    assert "<span>refuse, polite</span>" in (tmp_path / "report.html").read_text()
    assert {file.stem for file in (tmp_path / "figures").glob("prompt-*.svg")} == {
        "prompt-placebo",
        "prompt-polite",
    }


def test_a_policy_is_handed_the_words_whether_run_by_command_or_in_python(prompts_file: Path, tmp_path: Path) -> None:
    policy = Listening()
    scores = evaluate(
        policy, [CASE], out=tmp_path, prompts=["P1", "careful"], prompts_file=prompts_file, init_states=[0]
    )

    instructions = (CASE.base_instruction, CASE.instruction)
    heard = {PREMISE_CHECK.text(text) for text in instructions} | {f"look twice, then {text}" for text in instructions}
    assert set(policy.heard) == heard
    assert len(policy.heard) == 4
    assert sorted(scores.pairs["prompt"].to_pylist()) == ["P1", "careful"]


def test_given_references_are_run_alone_and_beside_cases_of_other_tasks(tmp_path: Path) -> None:
    alone = RunSelection(cases=CASE.case_id, prompts=["P0"], references_only=True).instances()
    other = next(i for i in load_instances() if i.arm is Arm.REFERENCE and i.base_task != CASE.base_task)
    scores = evaluate("refuse", alone, out=tmp_path / "alone", init_states=[0])
    assert (scores.provenance.references, scores.provenance.conflicts) == (1, 0)
    assert scores.table("success")["n"].to_pylist() == [1, 1, 1]  # of all, the suite and the task

    evaluate("refuse", [*alone, CASE, other, other], out=tmp_path / "both", prompts=["P0"], init_states=[0])
    recorded = [record.instance_id for record in read_rollouts(tmp_path / "both").records()]
    assert sorted(recorded) == sorted([alone[0].instance_id, CASE.instance_id, other.instance_id])


def test_nothing_to_run_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="instances is empty, so there is nothing to run") as caught:
        evaluate("refuse", [], out=tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("chosen", "error", "message"),
    [
        (
            ["P0"],
            InvalidInputError,
            "--prompts names none of the prompts file's conditions: add some of careful, polite",
        ),
        (["P0", "carefull"], NotFoundError, "did you mean 'careful'"),
    ],
)
def test_a_file_that_nothing_is_used_of_is_refused(
    prompts_file: Path, tmp_path: Path, chosen: Sequence[str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        evaluate("refuse", [CASE], out=tmp_path, prompts=chosen, prompts_file=prompts_file)
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_not_continued_in_other_words_be_it_for_another_case(tmp_path: Path) -> None:
    def run_in(wording: str, case: Instance = CASE) -> None:
        own = tmp_path / "own.yaml"
        own.write_text(f'own: "{wording}"\n')
        evaluate("refuse", [case], out=tmp_path / "out", prompts=["own"], prompts_file=own, init_states=[0])

    run_in("look {instruction}")
    run_in("look {instruction}")
    there, here = (prompt_sha256(wording)[:8] for wording in ("look {instruction}", "look, {instruction}"))
    for case in (CASE, OTHER_CASE):
        with pytest.raises(InvalidInputError, match=rf"other words of the prompt own \({there} there, {here} here\)"):
            run_in("look, {instruction}", case)
