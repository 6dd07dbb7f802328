"""The premise effect: none of a policy that ignores the instruction, all of its success for one that refuses."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.analyses.tables.premise_effect import COMPARED, premise_effect_table, premise_effects
from conflictvla.eval.recordings.reading import read_rollouts
from conflictvla.eval.report.export import write_tables
from conflictvla.eval.report.page.page import render_report
from conflictvla.eval.rollouts.executors.in_process import InProcess
from conflictvla.eval.rollouts.replay import COMPARED as COMPARED_FEATURES
from conflictvla.eval.rollouts.replay import REPLAYED
from conflictvla.eval.rollouts.run import run_policy, with_references
from conflictvla.eval.scores.comparison import compare_policies
from conflictvla.eval.scores.scores import Scores, read_scores, score
from conflictvla.eval.scores.text_tables import table_names, text_table
from conflictvla.eval.scoring.pair_table import PAIR_COLUMNS
from conflictvla.eval.submissions.checks.rollout_checks import check_rollouts
from conflictvla.toolkit.records import Arm, Instance, Prompt, VisualProbe
from conflictvla.toolkit.simulation.scene_pool import ScenePool

from ...twins import write_twins
from ..in_process import Done, conflictvla
from ..synthetic_rollouts import small_evaluation, with_controls, write_dataset

MEASURES = tuple(measure.name for measure in COMPARED)
AGENTS = ("persist", "refuse")

Values = dict[str, float]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_twins(tmp_path_factory.mktemp("twins") / "release")


@pytest.fixture(scope="module")
def folder(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both agents on the references, conflicts and controls of three base tasks."""
    out = tmp_path_factory.mktemp("runs")
    everything = load_instances(release)
    chosen = [i for i in everything if i.arm is not Arm.REFERENCE and i.prompt == Prompt.P0]
    executor = InProcess(ScenePool(capacity=3))
    for agent in AGENTS:
        run_policy(agent, with_references(chosen, everything), out, init_states=[0], executor=executor)
    return out


@pytest.fixture(scope="module")
def scores(folder: Path) -> Scores:
    return score(folder, supplementary=True)


def effects(scores: Scores, policy: str, among: str = "all pairs") -> dict[str, dict[str, Any]]:
    rows = scores.table("premise_effect").to_pylist()
    return {row["measure"]: row for row in rows if (row["policy"], row["among"]) == (policy, among)}


def assert_same(one: pa.Table, other: pa.Table) -> None:
    """To the last bit, NaN equal to NaN."""
    assert one.schema == other.schema
    np.testing.assert_equal(one.to_pydict(), other.to_pydict())


def test_rollouts_of_controls_are_recorded_as_such_and_replay_as_valid_tasks(folder: Path) -> None:
    episodes = read_rollouts(folder / "persist").records()

    for control in (e for e in episodes if e.arm is Arm.CONTROL):
        reference = next(e for e in episodes if e.instance_id == control.pair_id)
        assert control.instance_id == f"{control.case_id}/control/P0"
        assert (control.cost_spec, control.cost) == (reference.cost_spec, reference.cost)
        assert control.success
    assert sum(e.arm is Arm.CONTROL for e in episodes) == sum(e.arm is Arm.CONFLICT for e in episodes) == 7


def test_a_policy_that_does_the_same_whatever_it_reads_has_no_effect_at_all(scores: Scores) -> None:
    rows = [row for row in scores.table("premise_effect").to_pylist() if row["policy"] == "persist"]

    assert {row["effect"] for row in rows} == {0.0}
    overall = effects(scores, "persist")
    assert {(row["effect_lo"], row["effect_hi"], row["n"], row["cases"]) for row in overall.values()} == {(0, 0, 7, 7)}
    assert {name: row["conflict"] for name, row in overall.items()} == {
        "RGSR": 1.0,
        "TAR": pytest.approx(1, abs=1e-4),
        "TS": pytest.approx(1, abs=1e-4),
        "Early20_TS": pytest.approx(1, abs=1e-4),
        "AMS": pytest.approx(0, abs=1e-4),
    }


def test_the_effect_of_a_policy_that_refuses_at_conflicts_alone_is_its_success(scores: Scores) -> None:
    overall = effects(scores, "refuse")

    (success,) = (row["PCSR"] for row in scores.table("overall").to_pylist() if row["policy"] == "refuse")
    assert overall["RGSR"]["effect"] == success == 1.0
    assert (overall["RGSR"]["conflict"], overall["RGSR"]["control"]) == (0.0, 1.0)
    assert overall["AMS"]["effect"] == pytest.approx(1.0)
    assert overall["Early20_TS"]["effect"] == pytest.approx(1.0)
    assert overall["TAR"]["effect"] > 0.9
    assert all(row["effect"] > 0.5 for row in overall.values())


def test_families_and_levels_have_rows_of_their_own(scores: Scores) -> None:
    rows = scores.table("premise_effect").to_pylist()

    groups = [row["among"] for row in rows if (row["policy"], row["measure"]) == ("refuse", "RGSR")]
    assert groups == ["all pairs", "instruction", "grounding", "spatial", "L1", "L3"]
    counts = [effects(scores, "refuse", group)["RGSR"]["cases"] for group in groups]
    assert counts == [7, 1, 3, 3, 5, 2]
    alone = effects(scores, "refuse", "instruction")["RGSR"]
    assert alone["effect"] == 1.0
    assert math.isnan(alone["effect_lo"])  # one base task knows no spread


def test_no_other_table_changes_where_controls_were_run_too(tmp_path: Path) -> None:
    plain = [made for policy in ("careful", "other") for made in small_evaluation(policy)]
    bare = score(write_dataset(tmp_path / "bare", plain), supplementary=True)
    both = score(write_dataset(tmp_path / "both", with_controls(plain)), supplementary=True)

    assert set(table_names(both)) - set(table_names(bare)) == {"premise-effect"}
    for name in table_names(bare):
        table = both.table(name.replace("-", "_"))
        if "arm" in table.column_names:  # controls have rows of their own
            table = table.filter(pc.not_equal(table["arm"], Arm.CONTROL.value))
        assert_same(table, bare.table(name.replace("-", "_")))
    assert_same(both.pairs, bare.pairs)
    assert both.refusals == bare.refusals == ()
    assert (both.provenance.conflicts, both.provenance.controls) == (96, 96)
    assert (bare.provenance.conflicts, bare.provenance.controls) == (96, 0)
    first, second = json.loads(bare.to_json()), json.loads(both.to_json())
    assert set(second) - set(first) == {"premise_effect", "controls", "refused_controls"}
    assert "controls" not in first["provenance"]
    for name in set(first) - {"provenance", "trajectories", "endings", "deviations"}:
        assert first[name] == second[name]


def test_comparing_policies_does_not_depend_on_controls(tmp_path: Path) -> None:
    a, b = (small_evaluation(name, reach=reach) for name, reach in (("a", 0.9), ("b", 0.2)))
    bare = [score(write_dataset(tmp_path / f"bare-{n}", made)) for n, made in enumerate((a, b))]
    both = [score(write_dataset(tmp_path / f"both-{n}", with_controls(made))) for n, made in enumerate((a, b))]

    assert_same(compare_policies(*both).table, compare_policies(*bare).table)


def test_the_effect_is_in_page_exports_and_scores_file(scores: Scores, folder: Path, tmp_path: Path) -> None:
    page = render_report(scores, folder)
    assert text_table(scores, "premise-effect").title in page
    assert "A policy that reacts to premises has an effect; one that reacts to wording has none." in page
    assert "14 with a conflict, 14 with a conflict repaired" in page
    assert {"premise-effect.md", "premise-effect.tex"} <= {file.name for file in write_tables(scores, tmp_path / "t")}
    file = scores.write(tmp_path / "scores.json")
    again = read_scores(file)
    assert again.to_json() == file.read_text(encoding="utf-8")
    assert_same(again.table("premise_effect"), scores.table("premise_effect"))


def test_without_controls_nothing_is_shown_and_the_table_is_empty(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "a", small_evaluation())
    found = score(folder, supplementary=True)

    assert "premise-effect" not in table_names(found)
    assert "remise effect" not in render_report(found, folder)
    assert found.table("premise_effect").num_rows == 0


def test_controls_without_conflicts_make_no_pairs_and_no_effect(tmp_path: Path) -> None:
    made = [r for r in with_controls(small_evaluation(prompts=[Prompt.P0])) if r.episode.arm is not Arm.CONFLICT]
    found = score(write_dataset(tmp_path / "a", made))

    assert (found.pairs.num_rows, found.controls.num_rows) == (0, 24)
    assert found.table("premise_effect").num_rows == found.table("overall").num_rows == 0
    assert found.provenance.unused_references == 0


def test_controls_that_cannot_be_paired_are_counted_apart_from_conflicts(tmp_path: Path) -> None:
    made = with_controls(small_evaluation(prompts=[Prompt.P0]))
    last = made[-1]
    made[-1] = replace(last, episode=replace(last.episode, mujoco_version="3.3.0"))
    folder = write_dataset(tmp_path / "a", made)
    found = score(folder)

    assert (found.refusals, found.refused_controls_by_field()) == ((), {"mujoco_version": 1})
    assert found.table("premise_effect")["n"][0].as_py() == 23
    assert read_scores(found.write(tmp_path / "scores.json")).refused_controls == found.refused_controls
    assert "1 control rollout refused" in render_report(score(folder, supplementary=True), folder)


def test_a_submission_has_all_controls_or_none(folder: Path, release: Path) -> None:
    rollouts = read_rollouts(folder / "refuse", REPLAYED, optional=COMPARED_FEATURES)
    everything = load_instances(release)
    episodes = rollouts.records()
    assert check_rollouts(rollouts, everything) == ()

    one_more = [replace(i, instance_id=f"{i.instance_id}-2") for i in everything if i.arm is Arm.CONTROL][:1]
    (found,) = check_rollouts(rollouts, [*everything, *one_more])
    assert found.check == "complete"
    assert one_more[0].instance_id in found.message

    under_p1 = {i.instance_id for i in everything if i.prompt == Prompt.P1}
    assert not under_p1 & {episode.instance_id for episode in episodes}


def test_controls_are_run_for_all_seeds_or_the_first_ones(release: Path, tmp_path: Path) -> None:
    everything = load_instances(release)
    chosen = [i for i in everything if i.prompt == Prompt.P0 and i.base_task == "turn_on_the_stove"]
    conflicts = [i for i in chosen if i.arm is Arm.CONFLICT]
    controls = [i for i in chosen if i.arm is Arm.CONTROL]

    def missing(out: Path) -> list[str]:
        rollouts = read_rollouts(out / "persist", REPLAYED, optional=COMPARED_FEATURES)
        return [found.message for found in check_rollouts(rollouts, chosen)]

    def run(instances: Sequence[Instance], seeds: Sequence[int]) -> None:
        executor = InProcess(ScenePool(capacity=1))
        run_policy(
            "persist", with_references(instances, chosen), tmp_path, init_states=[0], seeds=seeds, executor=executor
        )

    run(conflicts, [0, 1])
    run(controls, [1])
    (message,) = missing(tmp_path)
    assert f"{controls[0].instance_id} init0 seed0" in message
    run(controls, [0])
    assert missing(tmp_path) == []
    run(conflicts, [2])
    assert missing(tmp_path) == []


def test_a_run_of_chosen_cases_with_their_controls_verifies(folder: Path, release: Path) -> None:
    def verify(cases: str) -> Done:
        options = ("--tasks", release, "--cases", cases, "--sample", "1")
        return conflictvla("verify", folder / "persist", *options)

    done = verify("libero_goal/*")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "verified"), done.stdout
    narrower = verify("libero_goal/turn_on_the_stove/*")
    assert narrower.returncode == 1
    assert "cases rollouts of other cases than the chosen ones" in " ".join(narrower.stdout.split())
    assert "findings: 1" in narrower.stdout


def test_a_submission_without_controls_is_complete_under_a_release_that_has_them(release: Path, tmp_path: Path) -> None:
    everything = load_instances(release)
    chosen = [i for i in everything if i.prompt == Prompt.P0 and i.base_task == "turn_on_the_stove"]
    conflicts = [i for i in chosen if i.arm is Arm.CONFLICT]
    run_policy("persist", with_references(conflicts, everything), tmp_path, init_states=[0])
    rollouts = read_rollouts(tmp_path / "persist", REPLAYED, optional=COMPARED_FEATURES)

    assert check_rollouts(rollouts, chosen) == ()


def pairs_of(values: Iterable[Values], **place: Any) -> pa.Table:
    """Rows of a table of pairs with these measures; ``place`` overrides any column by a value or a column."""
    rows = []
    for number, row in enumerate(values):
        known: dict[str, Any] = {"policy": "a", "prompt": "P0", "language_probe": "W0", "visual_probe": "V0"}
        known |= {"suite": "s", "base_task": f"task {number % 3}", "family": "spatial", "level": "L1"}
        known |= {"case_id": f"case {number}", "init_state": 0, "seed": 0, "reference_success": True}
        known |= {name: row[name] for name in MEASURES if name != "RGSR"} | {"conflict_success": bool(row["RGSR"])}
        known |= {name: value[number] if isinstance(value, list) else value for name, value in place.items()}
        rows.append({name: known.get(name) for name in PAIR_COLUMNS})
    return pa.Table.from_pylist(rows, schema=pa.schema(list(PAIR_COLUMNS.items())))


shares = st.floats(0.0, 1.0) | st.just(math.nan)
measured = st.fixed_dictionaries({name: st.sampled_from([0.0, 1.0]) if name == "RGSR" else shares for name in MEASURES})
both_sides = st.lists(st.tuples(measured, measured), min_size=1, max_size=12)


@given(both_sides)
def test_exchanging_conflict_and_control_changes_the_sign(values: list[tuple[Values, Values]]) -> None:
    conflicts, controls = (pairs_of(side) for side in zip(*values, strict=True))
    there, back = premise_effects(conflicts, controls), premise_effects(controls, conflicts)

    for name in MEASURES:
        one, other = there[f"{name}_effect"].to_numpy(), back[f"{name}_effect"].to_numpy()
        np.testing.assert_array_equal(one, -other)
        assert (np.isnan(one) | (np.abs(one) <= 1)).all()


@given(both_sides)
def test_an_effect_is_control_minus_conflict_and_of_ams_the_reverse(values: list[tuple[Values, Values]]) -> None:
    conflicts, controls = (pairs_of(side) for side in zip(*values, strict=True))
    found = premise_effects(conflicts, controls).sort_by("case_id")
    order = np.argsort([f"case {number}" for number in range(len(values))])

    for name in MEASURES:
        sign = -1.0 if name == "AMS" else 1.0
        expected = [sign * (control[name] - conflict[name]) for conflict, control in (values[n] for n in order)]
        np.testing.assert_array_equal(found[f"{name}_effect"].to_numpy(), expected)


@given(both_sides, st.data())
def test_pairs_without_their_counterpart_change_nothing(
    values: list[tuple[Values, Values]], data: st.DataObject
) -> None:
    conflicts, controls = (pairs_of(side) for side in zip(*values, strict=True))
    dropped = data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    kept = pa.array([not gone for gone in dropped])

    found = premise_effect_table(conflicts, controls.filter(kept))
    assert_same(found, premise_effect_table(conflicts.filter(kept), controls))
    assert_same(found, premise_effect_table(conflicts.filter(kept), controls.filter(kept)))


@pytest.mark.parametrize(
    "place",
    [
        {"policy": "b"},
        {"prompt": "P1"},
        {"case_id": "another"},
        {"init_state": 1},
        {"seed": 1},
        {"base_task": "another"},
        {"visual_probe": VisualProbe.V3.value},
        {"language_probe": "W1"},
    ],
)
def test_pairs_of_another_case_or_condition_are_no_counterparts(place: dict[str, Any]) -> None:
    one: Values = dict.fromkeys(MEASURES, 1.0)

    assert premise_effects(pairs_of([one]), pairs_of([one], **place)).num_rows == 0


def test_seeds_are_averaged_within_a_pair_before_pairs_are() -> None:
    """Three seeds of one case weigh as much as the one seed of another; a seed without its counterpart nothing."""
    zero, one = dict.fromkeys(MEASURES, 0.0), dict.fromkeys(MEASURES, 1.0)
    place: dict[str, Any] = {"case_id": ["x", "x", "x", "y"], "base_task": ["t", "t", "t", "u"], "seed": [0, 1, 2, 0]}
    conflicts = pairs_of([zero, zero, one, one], **place)
    controls = pairs_of([one, one, one, one], **place)

    overall = {row["measure"]: row for row in premise_effect_table(conflicts, controls).to_pylist()[: len(MEASURES)]}
    assert overall["RGSR"]["effect"] == overall["TAR"]["effect"] == pytest.approx((2 / 3 + 0) / 2)
    assert overall["AMS"]["effect"] == pytest.approx(-(2 / 3) / 2)
    assert (overall["RGSR"]["n"], overall["RGSR"]["cases"]) == (2, 2)
    lone = conflicts.filter(pc.not_equal(conflicts["seed"], 2))
    (first, *_) = premise_effect_table(lone, controls).to_pylist()
    assert first["effect"] == pytest.approx((1 + 0) / 2)


def test_a_seed_in_which_a_measure_is_undefined_leaves_the_others() -> None:
    one, undefined = dict.fromkeys(MEASURES, 1.0), dict.fromkeys(MEASURES, 1.0) | {"TAR": math.nan}
    zero = dict.fromkeys(MEASURES, 0.0)
    place: dict[str, Any] = {"case_id": "x", "base_task": "t", "seed": [0, 1]}

    (row,) = premise_effects(pairs_of([zero, zero], **place), pairs_of([one, undefined], **place)).to_pylist()
    assert (row["TAR_conflict"], row["TAR_control"], row["TAR_effect"]) == (0.0, 1.0, 1.0)
    (row,) = premise_effects(pairs_of([zero], case_id="x"), pairs_of([undefined], case_id="x")).to_pylist()
    assert math.isnan(row["TAR_effect"])
    assert (row["TS_effect"], row["RGSR_effect"]) == (1.0, 1.0)
    table = premise_effect_table(pairs_of([zero], case_id="x"), pairs_of([undefined], case_id="x")).to_pylist()
    (tar,) = (row for row in table if (row["among"], row["measure"]) == ("all pairs", "TAR"))
    assert (tar["n"], tar["cases"]) == (0, 0)
    assert math.isnan(tar["conflict"])


def test_the_order_of_rows_changes_no_bit() -> None:
    rng = np.random.default_rng(5)
    values = [
        {name: float(rng.integers(2)) if name == "RGSR" else rng.random() for name in MEASURES} for _ in range(60)
    ]
    conflicts, controls = pairs_of(values), pairs_of(values[::-1])
    mixed = rng.permutation(60)

    assert premise_effect_table(conflicts, controls).equals(
        premise_effect_table(conflicts.take(pa.array(mixed)), controls.take(pa.array(mixed[::-1])))
    )
