"""Forged submissions: each kind is caught by the check that is named, or listed as beyond what can be checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from conflictvla.builders.rollouts.schema import FRAME_FEATURES, Rollout
from conflictvla.eval.recordings.reading import read_rollouts
from conflictvla.eval.rollouts.replay import OTHER_PROCESSORS_TOLERANCE, draw_sample, replay_rows
from conflictvla.eval.scores.scores import score
from conflictvla.eval.statistics.intervals import Interval
from conflictvla.eval.submissions.checks.rollout_checks import check_rollouts
from conflictvla.eval.submissions.checks.state_checks import check_states
from conflictvla.eval.submissions.coverage import PARTIAL, Coverage
from conflictvla.eval.submissions.results import result_of
from conflictvla.eval.submissions.results_file import read_result, result_json
from conflictvla.eval.submissions.verify import verify_submission
from conflictvla.toolkit.errors import DatasetError, InvalidInputError
from conflictvla.toolkit.records import VisualProbe

from .forgeries import (
    FORGERIES,
    HELD_STILL,
    REFERENCE,
    Forge,
    an_object_pushed_a_little_each_step,
    at_seed,
    placebo,
    seen_under,
)
from .recorded import SCENES, honest, release, under_prompt, with_episode, write

COVERED = Coverage(kind=PARTIAL, rollouts=6, of=15)
"""Two of five initial states, and the release of these tests has P0 alone."""


def objections(folder: Path, rollouts: Sequence[Rollout], tolerance: float = 0.0) -> set[str]:
    """The checks that object, in their order: those of the records and frames, of the states, and the replay."""
    write(folder, rollouts)
    try:
        read = read_rollouts(folder, tuple(FRAME_FEATURES))
    except DatasetError:
        return {"reading"}
    found = {finding.check for finding in check_rollouts(read, release())}
    plans = {instance.instance_id: instance.plan for instance in release()}
    found = found or {finding.check for finding in check_states(folder, read, SCENES, plans=plans, tolerance=tolerance)}
    if found:
        return found
    rows = [0, len(read) - 1]
    replayed = replay_rows(folder, read, rows, tolerance=tolerance, scenes=SCENES)
    return {"replay"} if any(check.difference for check in replayed.values()) else set()


HASHES_ONLY = {"settled_states_that_fit_each_other_but_not_the_scene"}
"""With a tolerance a settled state is compared with the scene itself, so a hash of it that is wrong does no harm."""


@pytest.mark.parametrize("tolerance", [0.0, OTHER_PROCESSORS_TOLERANCE])
@pytest.mark.parametrize("name", sorted(FORGERIES))
def test_a_forgery_is_caught(tmp_path: Path, name: str, tolerance: float) -> None:
    check, forge = FORGERIES[name]
    forged = forge(list(honest()))
    found = objections(tmp_path / "forged", forged, tolerance)
    if tolerance > 0:
        assert bool(found) == (name not in HASHES_ONLY)
    else:
        assert check in found


def test_small_liberties_add_up_in_a_replay(tmp_path: Path) -> None:
    folder = write(tmp_path / "forged", an_object_pushed_a_little_each_step(list(honest())))
    read = read_rollouts(folder, tuple(FRAME_FEATURES))
    checks = replay_rows(folder, read, [HELD_STILL], tolerance=OTHER_PROCESSORS_TOLERANCE, scenes=SCENES)
    assert "in all" in str(checks[HELD_STILL].difference)


def test_an_honest_submission_passes_and_gives_its_scores(tmp_path: Path) -> None:
    folder = write(tmp_path / "honest", honest())
    report = verify_submission(folder, release(), sample=6, seed=1, scenes=SCENES)
    assert report.findings == ()
    assert (report.rollouts, report.replayed, report.missed_one_forged) == (6, 6, 0.0)
    assert report.scores.to_json() == score(folder).to_json()
    assert report.result.coverage == COVERED


FURTHER_REFERENCES: dict[str, Forge] = {
    "another seed": lambda r: [at_seed(x, 1) for x in r[::3]],
    "another seed in one initial state": lambda r: [at_seed(r[REFERENCE], 7)],
    "the placebo": lambda r: placebo(r)[::3],
    "a visual probe": lambda r: seen_under(r[::3], VisualProbe.V1),
}


@pytest.mark.parametrize("name", FURTHER_REFERENCES)
def test_further_references_ask_for_no_conflicts(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path / "more", [*honest(), *FURTHER_REFERENCES[name](list(honest()))])
    report = verify_submission(folder, release(), sample=1, seed=1, scenes=SCENES)
    assert report.findings == ()
    assert report.result.coverage == COVERED


def test_the_placebo_is_verified_like_the_released_conditions_and_stands_in_the_result(tmp_path: Path) -> None:
    folder = write(tmp_path / "placebo", [*honest(), *placebo(honest())])
    report = verify_submission(folder, release(), sample=12, seed=1, scenes=SCENES)
    assert report.findings == ()
    assert report.result.prompts == ("P0", "placebo")
    (tmp_path / "result.json").write_text(result_json(report.result))
    again = read_result(tmp_path / "result.json").row("placebo")
    assert again is not None
    assert again.n == 4


def test_words_of_ones_own_are_one_finding(tmp_path: Path) -> None:
    own = [under_prompt(x, "polite", f"please {x.episode.instruction}") for x in honest()]
    folder = write(tmp_path / "own", [*honest(), *own])
    (found,) = verify_submission(folder, release(), sample=1, seed=1, scenes=SCENES).findings
    assert str(found).startswith(
        "prompts: a submission is under P0, P1, placebo only, these are in words of your own (polite): half_refusing/"
    )
    assert found.count == 6


def test_other_cases_than_the_chosen_ones_are_named_as_such(tmp_path: Path) -> None:
    folder = write(tmp_path / "honest", honest())
    read = read_rollouts(folder, tuple(FRAME_FEATURES))
    (found,) = check_rollouts(read, release(), cases={str(release()[1].case_id)})
    assert (found.check, found.count) == ("cases", 2)
    assert "rollouts of other cases than the chosen ones" in found.message
    first = [x for x in honest() if x.episode.case_id != release()[2].case_id]
    read = read_rollouts(write(tmp_path / "first", first), tuple(FRAME_FEATURES))
    assert check_rollouts(read, release(), cases={str(release()[1].case_id)}) == ()


def test_results_that_the_trajectories_do_not_give_are_caught(tmp_path: Path) -> None:
    folder = write(tmp_path / "honest", honest())
    true = result_of(score(folder), coverage=COVERED)
    row = true.rows[0]
    flattering = replace(row, measures={**row.measures, "RGSR": Interval(value=0.0, low=0.0, high=0.0)})
    flattering = replace(flattering, response=Interval(value=1.0, low=1.0, high=1.0))
    lies = replace(true, rows=(flattering, *true.rows[1:]), rollouts=600)
    report = verify_submission(folder, release(), sample=1, seed=0, claimed=lies, scenes=SCENES)
    assert [str(finding) for finding in report.findings] == [
        "scores: the results file is not what the trajectories give: rollouts, response of P0 all all, RGSR of P0 "
        "all all"
    ]


NOT_CATCHABLE = {
    "plain pictures shown in place of perturbed ones": lambda r: [*r, *seen_under(r, VisualProbe.V1)],
    "the best of several complete runs": lambda r: [
        with_episode(x, seed=9, rollout_id=x.episode.rollout_id.replace("seed0", "seed9")) for x in r
    ],
    "another policy's rollouts under this name": lambda r: [
        with_episode(x, policy_name="vla", rollout_id=x.episode.rollout_id.replace("half_refusing", "vla")) for x in r
    ],
}


@pytest.mark.parametrize("name", sorted(NOT_CATCHABLE))
def test_what_no_replay_can_tell_passes(tmp_path: Path, name: str) -> None:
    """The guide for submissions names them: such rollouts are real, only the words about them are not."""
    assert objections(tmp_path / "forged", NOT_CATCHABLE[name](list(honest()))) == set()


def test_a_forged_rollout_outside_the_sample_passes_with_the_chance_that_is_reported(tmp_path: Path) -> None:
    forged = FORGERIES["actions_invented"][1](list(honest()))
    folder = write(tmp_path / "forged", forged)
    seed_of = {draw_sample(6, 1, seed) == [HELD_STILL]: seed for seed in range(20)}
    for is_drawn, seed in seed_of.items():
        report = verify_submission(folder, release(), sample=1, seed=seed, scenes=SCENES)
        assert {finding.check for finding in report.findings} == ({"replay"} if is_drawn else set())
        assert report.missed_one_forged == pytest.approx(5 / 6)


def test_several_datasets_or_no_sample_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "a", honest()[:3])
    write(tmp_path / "b", honest()[3:])
    with pytest.raises(DatasetError, match="holds 2 datasets"):
        verify_submission(tmp_path, release(), sample=1, seed=0)
    with pytest.raises(InvalidInputError, match="at least 1"):
        verify_submission(tmp_path / "a", release(), sample=0, seed=0)
