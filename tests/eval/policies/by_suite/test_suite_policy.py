"""One checkpoint a suite is one policy: one name, one revision, and only the suite's own checkpoint in memory."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.policies.by_suite.mapping import is_mapping, read_mapping
from conflictvla.eval.policies.by_suite.policy import SuitePolicy
from conflictvla.eval.policies.registry import load_policy, policy_for_run, policy_of_suite
from conflictvla.eval.recordings.reading import read_rollouts
from conflictvla.eval.rollouts.executors.base import Executor
from conflictvla.eval.rollouts.executors.in_process import InProcess
from conflictvla.eval.rollouts.executors.processes import Processes
from conflictvla.eval.rollouts.run import run_policy, with_references
from conflictvla.eval.scores.scores import score
from conflictvla.eval.submissions.checks.record_checks import check_records
from conflictvla.eval.submissions.submit import SubmissionSource, check_submission
from conflictvla.toolkit.errors import InvalidInputError, NotFoundError, PolicyError
from conflictvla.toolkit.records import Arm, Instance, Prompt

from ...in_process import conflictvla
from ..serving.test_serving import served
from .suite_checkpoints import LOADED_FILE, REVISION_FILE

HERE = Path(__file__).parent
TASKS = {
    "libero_spatial": "pick_up_the_black_bowl_next_to_the_plate_and_place_it_on_the_plate",
    "libero_goal": "turn_on_the_stove",
}
CASES = ",".join(f"{suite}/{task}/grounding/L1/00*" for suite, task in TASKS.items())
STILL = "libero_spatial=suite_checkpoints:StillCheckpoint,libero_goal=suite_checkpoints:OtherCheckpoint"
REVISION = "libero_goal=still-2, libero_spatial=still-1"


@pytest.fixture(autouse=True)
def loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The checkpoints beside this file, importable here and in workers; the file in which they note their loading."""
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    monkeypatch.setenv(LOADED_FILE, str(tmp_path / "loaded"))
    monkeypatch.setenv(REVISION_FILE, str(tmp_path / "revision"))
    return tmp_path / "loaded"


def _chosen(steps: int) -> tuple[Instance, ...]:
    """A case of each of two suites, and their references, cut to a few steps."""
    instances = load_instances()
    conflicts = [
        next(i for i in instances if (i.arm, i.prompt, i.suite, i.base_task) == (Arm.CONFLICT, Prompt.P0, *where))
        for where in TASKS.items()
    ]
    return tuple(replace(instance, horizon=steps) for instance in with_references(conflicts, instances))


def _loads(file: Path) -> Iterator[tuple[str, str, int]]:
    for line in file.read_text().splitlines():
        process, revision, alive = line.split()
        yield process, revision, int(alive)


@pytest.mark.parametrize("executor", [InProcess(), Processes(2)], ids=["one process", "two processes"])
def test_a_worker_loads_only_the_checkpoint_of_the_suite_that_it_runs(
    executor: Executor, loaded: Path, tmp_path: Path
) -> None:
    run = run_policy(f"name=still,{STILL}", _chosen(8), tmp_path / "out", init_states=[0, 1], executor=executor)
    assert (run.rollouts, run.failures) == (8, ())
    # One of each at the beginning, to find out what it is; then each worker those of the suites that it runs.
    first, then = list(_loads(loaded))[:2], list(_loads(loaded))[2:]
    assert [revision for _, revision, _ in first] == ["still-2", "still-1"]
    by_process = defaultdict(list)
    for process, revision, alive in then:
        by_process[process].append(revision)
        assert alive <= 1
    for revisions in by_process.values():
        assert len(revisions) == len(set(revisions))
    assert {revision for revisions in by_process.values() for revision in revisions} == {"still-1", "still-2"}


def test_every_rollout_records_the_whole_mapping_and_a_submission_finds_one_policy(tmp_path: Path) -> None:
    file = tmp_path / "both.yaml"
    file.write_text("name: both\nfamily: Scripted\nsuites:\n  libero_goal: persist\n  libero_spatial: refuse\n")
    run = ("run", "--policy", file, "--cases", CASES, "--prompts", "P0", "--init-states", "0")
    done = conflictvla(*run, "--workers", "2", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    records = read_rollouts(tmp_path / "out" / "rollouts" / "both").records()
    assert len(records) == 4
    versions = {suite: load_policy(agent).info.revision for suite, agent in read_mapping(str(file)).policies.items()}
    revision = f"libero_goal={versions['libero_goal']}, libero_spatial={versions['libero_spatial']}"
    assert {record.policy_revision for record in records} == {revision}
    assert list(check_records(records, load_instances())) == []
    success = {record.suite: record.success for record in records if record.arm is Arm.CONFLICT}
    assert success == {"libero_goal": True, "libero_spatial": False}
    scores = score(tmp_path / "out")
    assert scores.policies == ("both",)
    assert not scores.refusals
    assert scores.table("suite")["RGSR"].to_pylist() == [0.0, 1.0]
    source = SubmissionSource(folder=tmp_path / "out" / "rollouts" / "both", repo_id="", commit="")
    result = check_submission(source, load_instances()).result
    assert (result.policy_name, result.policy_revision) == ("both", revision)


def test_one_server_a_suite_does_what_the_agents_behind_them_do(tmp_path: Path) -> None:
    chosen = _chosen(10)
    with served("persist", "vla-eval") as one, served("refuse", "vla-eval") as other:
        remote = ",".join(
            f"{suite}=vla-eval://127.0.0.1:{port}?image_size=64&revision={agent}"
            for suite, port, agent in (("libero_goal", one, "persist"), ("libero_spatial", other, "refuse"))
        )
        run_policy(f"name=served,{remote}", chosen, tmp_path, init_states=[0])
    run_policy("name=local,libero_goal=persist,libero_spatial=refuse", chosen, tmp_path, init_states=[0])
    by_name = {name: read_rollouts(tmp_path / name) for name in ("served", "local")}
    actions = {
        name: {
            record.rollout_id.removeprefix(name): rollouts.feature("action")[start:end].tobytes()
            for record, start, end in zip(rollouts.records(), rollouts.offsets, rollouts.offsets[1:], strict=False)
        }
        for name, rollouts in by_name.items()
    }
    assert actions["served"] == actions["local"]
    assert {r.policy_revision for r in by_name["served"].records()} == {"libero_goal=persist, libero_spatial=refuse"}


def test_a_file_that_changes_during_a_run_changes_nothing(tmp_path: Path, loaded: Path) -> None:
    file = tmp_path / "still.yml"
    file.write_text("suites: {libero_goal: 'suite_checkpoints:StillCheckpoint'}\n")
    policy, info = policy_for_run(str(file), ["libero_goal"])
    file.write_text("suites: {libero_goal: 'suite_checkpoints:OtherCheckpoint'}\n")
    assert isinstance(policy, str)
    assert load_policy(policy).info == info
    assert [revision for _, revision, _ in _loads(loaded)] == ["still-1"]


def test_a_checkpoint_that_changes_during_a_run_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "revision").write_text("first")
    policy, _ = policy_for_run("libero_goal=suite_checkpoints:ChangingCheckpoint", ["libero_goal"])
    assert isinstance(policy, str)
    (tmp_path / "revision").write_text("second")
    chosen = [instance for instance in _chosen(4) if instance.suite == "libero_goal"]
    with pytest.raises(PolicyError, match=r"the policy of libero_goal was first when the run began, and is now second"):
        run_policy(policy, chosen, tmp_path / "out", init_states=[0])


def test_settings_that_all_share_are_recorded_once_and_the_others_by_suite() -> None:
    info = load_policy(f"name=still,family=Still,{STILL}").info
    assert (info.name, info.revision, info.family) == ("still", REVISION, "Still")
    assert info.settings == {"rate": 20, "libero_goal.of": "still-2", "libero_spatial.of": "still-1"}
    unnamed = load_policy(STILL).info
    assert (unnamed.name, unnamed.family) == ("checkpoint", "Scripted")  # what all share


def test_a_preset_and_settings_hold_for_the_policy_of_each_suite_and_its_own_come_first(tmp_path: Path) -> None:
    file = tmp_path / "openvla.yaml"
    file.write_text(
        "name: openvla\npreset: openvla\nsettings: {wait_s: 2, revision: 'a b&c'}\nsuites:\n"
        "  libero_goal: vla-eval://a:8000?revision=own\n  libero_10: vla-eval://b:8001\n"
    )
    mapping = read_mapping(str(file))
    assert mapping.policies == {
        "libero_10": "vla-eval://b:8001?wait_s=2&revision=a%20b%26c&name=openvla&images=rotated&image_size=256"
        "&axis_angle=robosuite&gripper=snap",
        "libero_goal": "vla-eval://a:8000?revision=own&wait_s=2&name=openvla&images=rotated&image_size=256"
        "&axis_angle=robosuite&gripper=snap",
    }
    assert (
        read_mapping("libero_goal=vla-eval://a,libero_10=vla-eval://b", "openvla")
        .policies["libero_10"]
        .endswith("?name=openvla&images=rotated&image_size=256&axis_angle=robosuite&gripper=snap")
    )
    assert read_mapping(mapping.text()) == mapping


def test_the_preflight_check_takes_the_checkpoint_of_its_base_tasks_suite(loaded: Path) -> None:
    policy = policy_of_suite(STILL, "libero_goal")
    assert policy.info.revision == "still-2"
    assert [revision for _, revision, _ in _loads(loaded)] == ["still-2"]
    with pytest.raises(InvalidInputError, match="no policy for libero_10"):
        policy_of_suite(STILL, "libero_10")


@pytest.mark.parametrize("text", ["persist", "my_module:Policy", "openpi://host:8000?replan_steps=5", "lerobot:a?b=c"])
def test_the_name_of_one_policy_is_no_mapping(text: str) -> None:
    assert not is_mapping(text)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (
            "libero_goal=persist",
            "no policy for libero_spatial, of which cases are to be run; add libero_spatial=POLICY",
        ),
        ("libero_gaol=persist", "suite 'libero_gaol': did you mean 'libero_goal'?"),
        ("libero_goal=persist,libero_goal=refuse", "libero_goal is given twice"),
        ("libero_goal=persist,libero_spatial=", "nothing is given for libero_spatial"),
        ("libero_goal=persist,libero_spatial=refuse", "its policies are persist, refuse; name the whole"),
        ("libero_goal=persit,libero_spatial=refuse", "no policy 'persit': did you mean 'persist'?"),
        ("name=a/b,libero_goal=persist,libero_spatial=persist", "name=a/b: use letters"),
        ("name=nothing", "it names no suite; write SUITE=POLICY"),
        ("libero_goal=libero_goal=persist,libero_spatial=persist", "libero_goal is a mapping itself"),
        ("absent.yaml", "policy 'absent.yaml': no such file"),
        ("folder.yaml", "folder.yaml: cannot be read"),
        ("list.yaml", "list.yaml: write  suites:  and below it"),
        ("empty.yaml", "empty.yaml: write  suites:  and below it"),
        ("broken.yaml", "broken.yaml, line 3: not YAML"),
        ("binary.yaml", "binary.yaml: cannot be read"),
        ("python.yaml", "python.yaml, line 1: not YAML (could not determine a constructor"),
        ("twice.yaml", "twice.yaml: libero_goal is given twice"),
        ("unknown.yaml", "no key 'suits' of a policy: did you mean 'suites'?"),
        ("number.yaml", "suites: libero_goal: write the policy as on the command line"),
        ("none.yaml", "none.yaml: suites: write a line  NAME: VALUE  for each"),
        ("setting.yaml", "settings: stepwise: True is neither text nor a number"),
        ("name.yaml", "name.yaml: name: 7 is no text; put it in quotes"),
        ("preset.yaml", "no preset 'openvl': did you mean 'openvla'?"),
        ('{"suites": 1}', "write SUITE=POLICY,SUITE=POLICY or a YAML file's path"),
    ],
)
def test_a_mapping_that_makes_no_sense_is_one_line_and_nothing_is_written(
    policy: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    both = "{libero_goal: persist, libero_spatial: persist}"
    contents = {
        "list.yaml": "- libero_goal\n- libero_spatial\n",
        "empty.yaml": "",
        "broken.yaml": "suites:\n  libero_goal: [persist\n",
        "python.yaml": "suites: !!python/object/apply:os.system ['touch touched']\n",
        "twice.yaml": "suites:\n  libero_goal: persist\n  libero_spatial: persist\n  libero_goal: refuse\n",
        "unknown.yaml": f"suits: {both}\nsuites: {both}\n",
        "number.yaml": "suites: {libero_goal: 7, libero_spatial: persist}\n",
        "none.yaml": "suites: persist\n",
        "setting.yaml": f"suites: {both}\nsettings: {{stepwise: yes}}\n",
        "name.yaml": f"suites: {both}\nname: 7\n",
        "preset.yaml": f"suites: {both}\npreset: openvl\n",
    }
    for name, content in contents.items():
        Path(name).write_text(content)
    Path("binary.yaml").write_bytes(b"\xff\xfe\x00suites")
    Path("folder.yaml").mkdir()
    before = sorted(folder.iterdir())
    done = conflictvla("run", "--policy", policy, "--cases", CASES, "--init-states", "0", "--out", "out")
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert sorted(folder.iterdir()) == before


def test_a_mapping_is_not_a_policy_that_any_suite_can_be_asked_of() -> None:
    policy = load_policy(STILL)
    assert isinstance(policy, SuitePolicy)
    with pytest.raises(NotFoundError, match="libero_gaol"):
        read_mapping("libero_gaol=persist")
    assert json.loads(policy.mapping.text())["members"]["libero_goal"]["revision"] == "still-2"
