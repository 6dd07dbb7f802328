"""How much of a full evaluation some rollouts are: never called complete where they are not."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conflictvla.builders.rollouts.schema import FRAME_FEATURES, Rollout
from conflictvla.builders.tasks_dataset.reading import load_instances, load_lite_cases, packaged_tasks
from conflictvla.eval.recordings.reading import read_rollouts
from conflictvla.eval.submissions.checks.rollout_checks import check_rollouts
from conflictvla.eval.submissions.coverage import (
    COMPLETE,
    LITE,
    OFF_PROTOCOL,
    PARTIAL,
    Coverage,
    coverage_of,
)
from conflictvla.toolkit.prompts import PLACEBO, prompt_sha256
from conflictvla.toolkit.records import Arm, Instance, Prompt

from .recorded import honest, lite, release, under_prompt, with_episode, write


def runs(states: Sequence[int], seeds: Sequence[int] = (0,), which: Sequence[int] = (0, 1, 2)) -> list[Rollout]:
    """Copies of the reference, first and second case's rollouts, for these initial states and seeds."""
    return [
        with_episode(
            honest()[number],
            init_state=state,
            seed=seed,
            rollout_id=f"half_refusing/{honest()[number].episode.instance_id}/init{state}/seed{seed}",
        )
        for seed in seeds
        for state in states
        for number in which
    ]


def covered(folder: Path, rollouts: Sequence[Rollout], instances: Sequence[Instance]) -> Coverage:
    return coverage_of(read_rollouts(write(folder, rollouts, states=False)), instances, lite())


@pytest.mark.parametrize(
    ("states", "seeds", "kind", "rollouts"),
    [
        (range(5), [0], COMPLETE, 15),
        (range(5), [0, 1, 2], COMPLETE, 45),
        ([0, 1], [0], PARTIAL, 6),
        (range(6), [0], OFF_PROTOCOL, 15),
        ([10, 11, 12, 13, 14], [0], OFF_PROTOCOL, 0),
        (range(5), [7], OFF_PROTOCOL, 15),
        (range(5), [0, 2], OFF_PROTOCOL, 30),
    ],
)
def test_initial_states_and_seeds_are_the_protocols_or_it_is_not_complete(
    tmp_path: Path, states: Sequence[int], seeds: Sequence[int], kind: str, rollouts: int
) -> None:
    found = covered(tmp_path / "a", runs(states, seeds), release())
    assert (found.kind, found.rollouts, found.of) == (kind, rollouts, 15 * len(seeds))


def changed_runs(**changes: object) -> list[Rollout]:
    """A complete evaluation, of which the first case was run otherwise in every initial state."""
    first = release()[1].instance_id
    return [with_episode(r, **changes) if r.episode.instance_id == first else r for r in runs(range(5))]


@pytest.mark.parametrize(
    "changes",
    [
        {"horizon": release()[1].horizon + 20},
        {"tasks_version": "0.9.0"},
        {"prompt_text": "please stop", "prompt_sha256": prompt_sha256("please stop")},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_was_run_otherwise_than_the_release_has_it_is_off_protocol_and_does_not_count(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    found = covered(tmp_path / "a", changed_runs(**changes), release())
    assert (found.kind, found.rollouts, found.of) == (OFF_PROTOCOL, 10, 15)


def test_the_placebo_beside_it_leaves_a_full_evaluation_complete_and_words_of_ones_own_do_not(tmp_path: Path) -> None:
    placebo = [under_prompt(r, "placebo", PLACEBO.text(r.episode.instruction)) for r in runs(range(5))]
    own = [under_prompt(r, "own", f"please {r.episode.instruction}") for r in runs(range(5))]
    found = covered(tmp_path / "placebo", [*runs(range(5)), *placebo], release())
    assert (found.kind, found.rollouts, found.of) == (COMPLETE, 15, 15)
    assert covered(tmp_path / "own", [*runs(range(5)), *own], release()).kind == OFF_PROTOCOL
    assert covered(tmp_path / "alone", placebo, release()) == Coverage(kind=PARTIAL, rollouts=0, of=15)


def test_further_seeds_of_the_references_change_no_coverage(tmp_path: Path) -> None:
    more = runs(range(5), seeds=(1, 7), which=(0,))
    found = covered(tmp_path / "a", [*runs(range(5)), *more], release())
    assert (found.kind, found.rollouts, found.of) == (COMPLETE, 15, 15)


def test_p0_alone_is_part_of_a_release_that_has_both_prompts(tmp_path: Path) -> None:
    found = covered(tmp_path / "a", runs(range(5)), load_instances())
    assert found == Coverage(kind=PARTIAL, rollouts=15, of=14_530)
    assert str(found) == "partial: 15 of 14,530"


def test_the_lite_selection_is_called_lite_only_where_all_of_it_is_there(tmp_path: Path) -> None:
    whole = covered(tmp_path / "lite", runs(range(5), which=(0, 1)), release())
    assert (whole.kind, whole.rollouts) == (LITE, 10)
    assert covered(tmp_path / "less", runs(range(4), which=(0, 1)), release()).kind == PARTIAL
    assert covered(tmp_path / "other", runs(range(5), which=(0, 2)), release()).kind == PARTIAL
    assert covered(tmp_path / "all", runs(range(5)), release()).kind == COMPLETE


def test_the_lite_selection_of_a_task_release_is_what_its_column_marks(tmp_path: Path) -> None:
    marked = load_lite_cases()
    assert len(marked) == 160
    tasks = Path(shutil.copytree(packaged_tasks(), tmp_path / "tasks"))
    cases = pq.read_table(tasks / "cases/test.parquet")
    place = cases.column_names.index("lite")
    chosen = [name in sorted(marked)[:3] for name in cases["case_id"].to_pylist()]
    pq.write_table(cases.set_column(place, cases.schema.field("lite"), pa.array(chosen)), tasks / "cases/test.parquet")
    assert load_lite_cases(tasks) == frozenset(sorted(marked)[:3])


def test_a_lite_run_is_not_asked_for_the_other_cases_and_every_other_run_is(tmp_path: Path) -> None:
    def asked_for(folder: Path, which: Sequence[int], selection: frozenset[str]) -> list[str]:
        chosen = [honest()[number] for number in which]
        read = read_rollouts(write(folder, chosen), tuple(FRAME_FEATURES))
        return [found.message for found in check_rollouts(read, release(), selection) if found.check == "complete"]

    assert asked_for(tmp_path / "lite", (0, 1), lite()) == []
    assert len(asked_for(tmp_path / "other", (0, 2), lite())) == 1
    assert len(asked_for(tmp_path / "unmarked", (0, 1), frozenset())) == 1


@pytest.mark.parametrize(("prompts", "states"), [((Prompt.P0,), (0,)), ((Prompt.P0, Prompt.P1), (0, 1)), ((), (0, 1))])
def test_what_is_missing_is_counted_over_all_prompts_and_states_and_over_those_that_were_run(
    prompts: Sequence[Prompt], states: Sequence[int], tmp_path: Path
) -> None:
    """One case was run, of a base task's two; or nothing but references, which ask for no conditions."""
    instances = [i for i in load_instances() if i.base_task == release()[0].base_task and i.suite == release()[0].suite]
    known = [i for i in instances if i.arm is not Arm.CONTROL]
    ran = [under(r, prompt) for r in runs(states, which=(0, 1)) for prompt in prompts] or runs(states, which=(0,))
    read = read_rollouts(write(tmp_path / "a", ran), tuple(FRAME_FEATURES))
    found = [each.message for each in check_rollouts(read, known) if each.check == "complete"]
    full, here = 5 * len(known) - len(ran), len(states) * len(known) * len(prompts) // 2 - len(ran)
    assert [message.partition(": ")[0] for message in found] == (
        [
            f"the full evaluation has {full:,} more rollouts; missing under the prompts, initial states and seeds that "
            f"were run, {here:,} in all"
        ]
        if prompts
        else []
    )


def under(rollout: Rollout, prompt: Prompt) -> Rollout:
    """The same rollout as the release has it under a prompt condition."""
    if prompt is Prompt.P0:
        return rollout
    own = next(i for i in load_instances() if i.instance_id == rollout.episode.instance_id.replace("/P0", f"/{prompt}"))
    return under_prompt(rollout, prompt, own.prompt_text)
