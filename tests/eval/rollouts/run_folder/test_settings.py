"""Rollouts under different settings never come into one run, one merge or one scoring, in whatever order they come."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conflictvla.builders.cases.instances import plan_horizon, under_prompt
from conflictvla.builders.rollouts.episode_record import EpisodeRecord
from conflictvla.builders.rollouts.schema import SIM_STATES
from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.rollouts.executors.in_process import InProcess
from conflictvla.eval.rollouts.run import RunProgress, run_policy, with_references
from conflictvla.eval.rollouts.run_folder.horizons import GivenHorizon, horizon_kinds
from conflictvla.eval.rollouts.run_folder.merging import merge_runs
from conflictvla.eval.rollouts.versions import installed_versions
from conflictvla.eval.scores.scores import score
from conflictvla.eval.selection import HorizonKind, with_horizons
from conflictvla.toolkit.errors import DatasetError, InvalidInputError, PolicyError
from conflictvla.toolkit.language.plan_json import plan_from_json
from conflictvla.toolkit.prompts import PromptCondition
from conflictvla.toolkit.records import Arm, Instance, LanguageProbe, Level, Prompt, VisualProbe
from conflictvla.toolkit.simulation.scene_pool import ScenePool

from ...synthetic_rollouts import make_record, reaching_rollout, write_dataset
from .short_runs import BASE_TASKS, HORIZON, content, instances_of

NOISY: dict[str, Any] = {"visual_probe": VisualProbe.V4}
REWORDED: dict[str, Any] = {"language_probe": LanguageProbe.W1}
STEPS: dict[str, Any] = {"step_goals": ("", ""), "step_goal_met": (-1, -1)}


def dataset(folder: Path, *records: EpisodeRecord) -> Path:
    """A dataset of these records. Settings are compared before states are read, so it has an empty folder of them."""
    rng = np.random.default_rng(1)
    named = [replace(record, rollout_id=f"{record.rollout_id}/{folder.name}{n}") for n, record in enumerate(records)]
    write_dataset(folder, [reaching_rollout(record, rng) for record in named])
    (folder / SIM_STATES).mkdir()
    return folder


MIXES: dict[str, Sequence[dict[str, Any]]] = {
    "visual_noise (gaussian, salt_pepper)": (
        {},
        {**NOISY, "visual_settings": '{"noise": "gaussian"}'},
        {**NOISY, "visual_settings": '{"noise": "salt_pepper"}'},
    ),
    "tasks_version (1.0.0, 2.0.0)": (
        {**REWORDED, "tasks_version": "1.0.0"},
        {"tasks_version": "1.0.0"},
        {"tasks_version": "2.0.0"},
    ),
    "probes_version (1.0.0, 2.0.0)": (
        {"tasks_version": "1.0.0"},
        {**REWORDED, "tasks_version": "1.0.0"},
        {**REWORDED, "tasks_version": "2.0.0"},
    ),
    "words of the prompt polite (2+aa, 2+bb)": (
        {},
        {"prompt": "polite", "prompt_version": "2+aa"},
        {"prompt": "polite", "prompt_version": "2+bb"},
    ),
    "words of the prompt polite (none, 1)": (
        {"prompt": "polite", "prompt_version": None},
        {"prompt": "polite", "prompt_version": "1"},
    ),
    "policy_family (Continuous, Tokenized)": ({"policy_family": "Continuous"}, {"policy_family": "Tokenized"}),
    "policy_family (none, Tokenized)": ({}, {"policy_family": "Tokenized"}),
    "rounding_kernel (none, Haswell)": ({"rounding_kernel": None}, {"rounding_kernel": "Haswell"}),
    "policy_settings.chunk (1, 2)": ({"policy_settings": '{"chunk": 1}'}, {"policy_settings": '{"chunk": 2}'}),
    **{
        f"{name} (1, 2)": ({name: "1"}, {name: "2"})
        for name in (
            *("policy_revision", "protocol_version", "conflictvla_version", "libero_distribution"),
            *("mujoco_version", "robosuite_version", "numpy_version"),
        )
    },
}


@pytest.mark.parametrize("named", MIXES)
def test_runs_under_different_settings_are_not_merged_in_any_order(named: str, tmp_path: Path) -> None:
    runs = [dataset(tmp_path / str(n), make_record(**changes)) for n, changes in enumerate(MIXES[named])]
    name, values = named[:-1].split(" (")
    for order in itertools.permutations(runs):
        with pytest.raises(InvalidInputError, match="these runs cannot be merged") as refused:
            merge_runs(order, tmp_path / "out")
        found = re.search(rf"other {re.escape(name)} \((.+) there, (.+) here\), there being ", str(refused.value))
        assert found is not None
        assert sorted(found.groups()) == sorted(values.split(", "))
        assert not (tmp_path / "out").exists()


def test_kinds_of_horizons_are_not_merged_though_other_cases_have_them(tmp_path: Path) -> None:
    """The base task has two steps and 300 actions; cases with three steps have 450 by their plan, or 300."""
    reference = make_record(init_state=1, **STEPS)
    same = make_record(arm=Arm.CONFLICT, **STEPS)
    longer: dict[str, Any] = {"step_goals": ("", "", ""), "step_goal_met": (-1, -1, -1)}
    base = make_record(arm=Arm.CONFLICT, case=1, horizon=300, **longer)
    plan = make_record(arm=Arm.CONFLICT, case=2, horizon=450, **longer)
    runs = [
        dataset(tmp_path / "references", reference, same),
        dataset(tmp_path / "base", base),  # its references are elsewhere
        dataset(tmp_path / "plan", reference, plan),
    ]
    for order in itertools.permutations(runs):
        with pytest.raises(InvalidInputError, match=r"other horizon_kind \((base there, plan|plan there, base) here\)"):
            merge_runs(order, tmp_path / "out")


@pytest.mark.parametrize("kind", HorizonKind)
def test_the_kind_of_every_horizon_that_a_run_can_have_shows_in_the_instances(kind: HorizonKind) -> None:
    released = load_instances(None, tuple(LanguageProbe))
    base = {i.instance_id: i.horizon for i in released if i.arm is Arm.REFERENCE}
    kinds = horizon_kinds(GivenHorizon.of_instance(instance) for instance in with_horizons(released, kind))
    assert [found == kind for found in kinds] == [i.horizon != base[i.pair_id] for i in released]
    assert set(kinds) == {None, kind}


def test_a_horizon_of_neither_kind_is_told_from_both_and_unknown_ones_are_left_open() -> None:
    reference = GivenHorizon(pair_id="r", is_reference=True, horizon=300, steps=2)
    given = [(300, 2), (450, 3), (300, 3), (400, 3), (200, 2), (450, None)]
    others = [replace(reference, is_reference=False, horizon=horizon, steps=steps) for horizon, steps in given]
    assert horizon_kinds([*others, reference]) == [None, "plan", "base", "neither", "neither", None, None]
    assert horizon_kinds(others) == [None] * len(others)


def conflicts_with_more_steps() -> dict[Level, Sequence[Instance]]:
    """A case of L3 and one of L4 of one base task, each with its reference, all with short horizons by their plans."""
    everything = load_instances()
    found: dict[Level, Sequence[Instance]] = {}
    for level in (Level.L3, Level.L4):
        conflict = next(
            i
            for i in everything
            if (i.base_task, i.level, i.prompt, i.arm) == (BASE_TASKS[0], level, Prompt.P0, Arm.CONFLICT)
            and i.horizon > 300
        )
        reference, _ = with_references([conflict], everything)
        steps, base_steps = (len(plan_from_json(i.plan).steps) for i in (conflict, reference))
        found[level] = (
            replace(reference, horizon=HORIZON),
            replace(conflict, horizon=plan_horizon(HORIZON, steps, base_steps=base_steps)),
        )
    return found


def run_in(out: Path, scenes: ScenePool, instances: Sequence[Instance], **settings: Any) -> None:
    run_policy("misbehaving:Drift", instances, out, init_states=[0], executor=InProcess(scenes), **settings)


def refused_run(out: Path, scenes: ScenePool, instances: Sequence[Instance], **settings: Any) -> str:
    """The line in which a run is refused that leaves everything as it was."""
    before = content(out)
    with pytest.raises(InvalidInputError) as refused:
        run_in(out, scenes, instances, **settings)
    assert content(out) == before
    return str(refused.value)


def test_a_run_of_base_horizons_is_not_extended_by_plan_horizons_of_other_cases(
    scenes: ScenePool, tmp_path: Path
) -> None:
    cases = conflicts_with_more_steps()
    run_in(tmp_path, scenes, with_horizons(cases[Level.L3], HorizonKind.BASE))
    assert refused_run(tmp_path, scenes, cases[Level.L4]) == (
        f"{tmp_path / 'drift'}: was run with other horizon_kind (base there, plan here); give the same, or choose "
        "another --out"
    )
    run_in(tmp_path, scenes, with_horizons(cases[Level.L4], HorizonKind.BASE))


def test_an_unfinished_run_knows_its_kind_of_horizon_and_its_wordings(scenes: ScenePool, tmp_path: Path) -> None:
    cases = conflicts_with_more_steps()
    polite = PromptCondition(name="polite", version="1+aa", wording="please {instruction}")
    first = [under_prompt(instance, polite) for instance in with_horizons(cases[Level.L3], HorizonKind.BASE)]

    def stop(state: RunProgress) -> None:
        if state.done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_in(tmp_path, scenes, first, progress=stop)
    assert not (tmp_path / "drift").exists()
    assert "other horizon_kind (base there, plan here)" in refused_run(tmp_path, scenes, cases[Level.L4])
    other = [under_prompt(instance, replace(polite, version="1+bb")) for instance in instances_of(BASE_TASKS[1:])]
    assert "other words of the prompt polite (1+aa there, 1+bb here)" in refused_run(tmp_path, scenes, other)


def failed_at_once(kind: str) -> tuple[str, Sequence[Instance], dict[str, Any]]:
    """A policy and settings of a run, each another than of a run of ``misbehaving:Drift`` on ``instances_of()``."""
    own = PromptCondition(name=str(Prompt.P0), version="0+aa", wording="please {instruction}")
    instances = {
        "prompt": [under_prompt(instance, own) for instance in instances_of()],
        "horizon": [replace(instance, horizon=HORIZON + 1) for instance in instances_of()],
    }
    settings = {"family": {"policy_family": "Tokenized"}}
    policy = "misbehaving:NeverStarts" if kind == "revision" else "misbehaving:Drift"
    return policy, instances.get(kind, instances_of()), settings.get(kind, {})


@pytest.mark.parametrize("kind", ["revision", "family", "prompt", "horizon"])
def test_a_run_that_ended_before_its_first_rollout_binds_no_later_one(
    kind: str, scenes: ScenePool, tmp_path: Path
) -> None:
    policy, instances, settings = failed_at_once(kind)

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises((KeyboardInterrupt, PolicyError)):
        run_policy(
            policy,
            instances,
            tmp_path,
            init_states=[0],
            executor=InProcess(scenes),
            progress=None if kind == "revision" else stop,
            **settings,
        )
    assert list((tmp_path / ".drift" / "plans").iterdir())
    run_in(tmp_path, scenes, instances_of())
    assert [path.name for path in tmp_path.iterdir()] == ["drift"]


def test_while_another_process_runs_its_first_rollout_its_settings_bind(scenes: ScenePool, tmp_path: Path) -> None:
    lines: list[str] = []

    def meanwhile(state: RunProgress) -> None:
        if state.job is None:  # planned, and nothing run yet
            with pytest.raises(InvalidInputError) as refused:
                run_in(tmp_path, scenes, instances_of(), policy_family="Tokenized")
            lines.append(str(refused.value))

    run_in(tmp_path, scenes, instances_of(), progress=meanwhile)
    assert ["other policy_family (none there, Tokenized here)" in line for line in lines] == [True]


def older(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings as a version would have them that knew no families and no horizons by plan."""
    gone = {"policy_family", "horizon_kind"}
    return {name: value for name, value in settings.items() if name not in gone} | {"conflictvla_version": "1.2.0"}


OTHERS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "older": (older, "written by conflictvla 1.2.0, and this is {here}: go on with that, or"),
    "newer": (
        lambda settings: {**settings, "lighting": "noon", "conflictvla_version": "9.0"},
        "written by conflictvla 9.0, and this is {here}: go on with that, or",
    ),
    "same name": (
        lambda settings: {**settings, "lighting": "noon"},
        "written by another version of conflictvla: go on",
    ),
    "nameless": (lambda settings: {}, "written by another version of conflictvla: go on with that, or"),
    "of another kind": (lambda settings: {**settings, "numpy_version": 2}, "written by another version of conflictvla"),
    "with other words": (lambda settings: {**settings, "prompt_versions": [["P0"]]}, "written by another version of"),
    "a list": (lambda settings: [settings], "written by another version of conflictvla: go on with that, or"),
    "torn": (lambda settings: json.dumps(settings)[:40], "damaged: restore it from a copy, or"),
}
"""Settings of an unfinished run that this version cannot read, and what is said of them."""


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory, scenes: ScenePool) -> Path:
    """A run that was interrupted after its first rollout."""
    out = tmp_path_factory.mktemp("interrupted")

    def stop(state: RunProgress) -> None:
        if state.job is not None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_in(out, scenes, instances_of(), progress=stop)
    return out


@pytest.mark.parametrize("other", OTHERS)
def test_a_run_of_another_version_is_named_and_none_of_its_rollouts_given_up(
    scenes: ScenePool, interrupted: Path, tmp_path: Path, other: str
) -> None:
    change, message = OTHERS[other]
    out = tmp_path / "out"
    shutil.copytree(interrupted, out)
    file = out / ".drift" / "run.json"
    settings = change(json.loads(file.read_text()))
    file.write_text(settings if isinstance(settings, str) else json.dumps(settings))
    line = refused_run(out, scenes, instances_of())
    assert line.startswith(f"{file}: {message.format(here=installed_versions().conflictvla)}")
    assert line.endswith(f" choose another --out; 1 finished rollout will stay in {out / '.drift' / 'shards'}")


def test_a_failure_that_cannot_be_read_is_one_line(scenes: ScenePool, interrupted: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(interrupted, out)
    (out / ".drift" / "failures").mkdir()
    (out / ".drift" / "failures" / "x.json").write_text('{"reason": "of another version"}')
    with pytest.raises(DatasetError, match=r"failures/x.json: unreadable; remove it and run again"):
        run_in(out, scenes, instances_of())


def test_one_call_is_not_for_two_wordings_of_a_prompt_either(scenes: ScenePool, tmp_path: Path) -> None:
    one, two = (PromptCondition(name="own", version=version, wording=version + " {instruction}") for version in "ab")
    mixed = [under_prompt(i, one if i.base_task == BASE_TASKS[1] else two) for i in instances_of()]
    line = refused_run(tmp_path, scenes, mixed)
    assert "these rollouts differ in their words of the prompt own (a there, b here); run them apart" in line


@pytest.mark.parametrize(
    ("before", "now", "what_to_give"),
    [
        (None, "Tokenized", "(none there, Tokenized here); give the same, so neither --family nor a --preset that has"),
        ("Tokenized", None, "(Tokenized there, none here); give the same, so --family 'Tokenized', or choose another"),
        ("One", "Other", "(One there, Other here); give the same, so --family 'One', or choose another --out"),
    ],
)
def test_a_run_is_not_continued_with_another_family_or_without_one(
    scenes: ScenePool, tmp_path: Path, before: str | None, now: str | None, what_to_give: str
) -> None:
    run_in(tmp_path, scenes, instances_of(BASE_TASKS[1:]), policy_family=before)
    line = refused_run(tmp_path, scenes, instances_of(), policy_family=now)
    assert f"was run with other policy_family {what_to_give}" in line


@pytest.mark.parametrize("policies", [("persist", "persist"), ("persist", "stop")])
def test_two_wordings_of_a_prompt_are_not_scored_together(tmp_path: Path, policies: Sequence[str]) -> None:
    for folder, policy, version in zip("ab", policies, ("2+aa", "2+bb"), strict=True):
        records = [
            make_record(policy=policy, arm=arm, prompt="polite", prompt_version=version, rollout_id=f"{folder}{arm}")
            for arm in (Arm.REFERENCE, Arm.CONFLICT)
        ]
        dataset(tmp_path / folder, *records)
        assert score(tmp_path / folder).pairs.num_rows == 1
    with pytest.raises(DatasetError) as refused:
        score(tmp_path)
    assert str(refused.value) == (
        f"{tmp_path / 'b'}: the words of the prompt polite are of version 2+bb, those in {tmp_path / 'a'} of version "
        "2+aa: two wordings are two prompt conditions; score them apart, or record one under another name"
    )


def test_recordings_without_versions_of_their_words_are_scored_beside_those_that_have_them(tmp_path: Path) -> None:
    for policy, version in (("persist", "1.0"), ("stop", None)):
        arms = (Arm.REFERENCE, Arm.CONFLICT)
        dataset(tmp_path / policy, *(make_record(policy=policy, arm=arm, prompt_version=version) for arm in arms))
    assert score(tmp_path).pairs.num_rows == 2
