"""From rollouts on the Hub to a pull request with their results, and to the mark that they were verified."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset
from huggingface_hub import HfApi, hf_hub_download

from conflictvla.builders.rollouts.schema import Rollout
from conflictvla.builders.tasks_dataset.columns import CONFIGS
from conflictvla.builders.tasks_dataset.reading import load_instances, packaged_tasks
from conflictvla.eval.submissions.results_file import read_result, read_results
from conflictvla.eval.submissions.untrusted.limits import check_folder, check_listing
from conflictvla.toolkit.errors import DatasetError
from conflictvla.toolkit.records import Arm

from ...hub.hub_server import Hub
from ..in_process import Done, conflictvla
from .recorded import honest, release, with_episode, write

RESULTS = "maintainers/results"


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A task release with just the cases that were rolled out."""
    folder = tmp_path_factory.mktemp("tasks")
    wanted = pa.array([str(i.case_id or i.instance_id) for i in release()])
    for config in CONFIGS:
        table = pq.read_table(packaged_tasks() / config / "test.parquet")
        key = "instance_id" if config == "references" else "case_id"
        (folder / config).mkdir()
        pq.write_table(table.filter(pc.is_in(table[key], wanted)), folder / config / "test.parquet")
    return folder


@pytest.fixture(scope="module")
def leaderboard(hub: Hub) -> Hub:
    os.environ["HF_TOKEN"] = "hf_maintainers"
    HfApi().create_repo(RESULTS, repo_type="dataset")
    return hub


@pytest.fixture(autouse=True)
def ann(leaderboard: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_ann")


def submit(address: str | Path, tasks: Path, *options: str | Path) -> Done:
    return conflictvla("submit", address, "--tasks", tasks, "--to", RESULTS, *options)


def publish_rollouts(folder: Path, rollouts: Sequence[Rollout], name: str) -> str:
    """Release rollouts as ``ann/NAME``; returns their address."""
    write(folder, rollouts)
    done = conflictvla("publish", folder, "--repo-id", f"ann/{name}", "--version", "1.0.0")
    assert done.returncode == 0, done.stderr
    return f"hf://ann/{name}@1.0.0"


def test_a_submission_becomes_a_pull_request_and_after_verification_a_marked_entry(
    hub: Hub, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = publish_rollouts(tmp_path / "rollouts", honest(), "rollouts-half")
    done = submit(address, tasks)
    assert done.returncode == 0, done.stderr
    assert "- covers: partial: 6 of 25; P0: 4 pairs; initial states 0, 1; seed 0" in done.stdout
    assert "Complete, paired and as the task release has it." in done.stdout
    (pull,) = HfApi().get_repo_discussions(RESULTS, repo_type="dataset")
    assert (pull.is_pull_request, pull.author) == (True, "ann")
    details = HfApi().get_discussion_details(RESULTS, pull.num, repo_type="dataset")
    assert details.events[0].content in done.stdout  # type: ignore[attr-defined]
    added = set(HfApi().list_repo_files(RESULTS, repo_type="dataset", revision=pull.git_reference))
    (path,) = added - set(HfApi().list_repo_files(RESULTS, repo_type="dataset"))

    file = Path(hf_hub_download(RESULTS, path, repo_type="dataset", revision=pull.git_reference))
    mark = tmp_path / "board/verified/half.json"
    options = ("--result", file, "--sample", "2", "--seed", "3", "--out", mark, "--tasks", tasks)
    verified = conflictvla("verify", address, *options)
    assert (verified.returncode, verified.stdout.splitlines()[-1]) == (0, "verified"), verified.stdout

    monkeypatch.setenv("HF_TOKEN", "hf_maintainers")
    HfApi().merge_pull_request(RESULTS, pull.num, repo_type="dataset")
    (tmp_path / "board/results").mkdir()
    (tmp_path / "board" / path).write_bytes(file.read_bytes())
    (entry,) = read_results(tmp_path / "board")
    assert entry.verification is not None
    assert entry.verification.replayed == 2
    (tmp_path / "board" / path).write_text(file.read_text().replace('"rollouts": 6', '"rollouts": 7'))
    assert read_results(tmp_path / "board")[0].verification is None

    assert submit(address, tasks).returncode == 2
    assert "were submitted before" in submit(address, tasks).stderr
    row = load_dataset(RESULTS, data_files="results/*.json", split="train")[0]
    assert row["policy_name"] == "half_refusing"


def test_a_dry_run_shows_and_sends_nothing(hub: Hub, tasks: Path, tmp_path: Path) -> None:
    before = len(hub.store.repos["dataset", RESULTS].pull_requests)
    folder = write(tmp_path / "rollouts", honest())
    done = submit(folder, tasks, "--dry-run", "--scripted", "--out", tmp_path / "result.json")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "nothing was sent")
    result = read_result(tmp_path / "result.json")
    assert (result.kind, result.repo_id, result.rollouts) == ("scripted agent", "", 6)
    local = submit(folder, tasks)
    assert local.returncode == 2
    assert "reviewers need the rollouts on the Hub" in local.stderr
    assert len(hub.store.repos["dataset", RESULTS].pull_requests) == before


def own_words(rollout: Rollout) -> Rollout:
    return with_episode(rollout, prompt="polite", prompt_version="1+aa")


def named(name: str) -> Callable[[Rollout], Rollout]:
    return lambda rollout: with_episode(rollout, policy_name=name)


@pytest.mark.parametrize("command", ["submit", "verify"])
@pytest.mark.parametrize(
    ("change", "arms", "message"),
    [
        (named("x"), (Arm.REFERENCE,), "a result is over pairs, and these rollouts have none: references alone show"),
        (named("x"), (Arm.CONFLICT,), "a result is over pairs, and these rollouts have none: all are refused"),
        (
            own_words,
            tuple(Arm),
            "a result is under P0, P1, placebo, which all policies share, and no pair is: run some",
        ),
    ],
)
def test_rollouts_that_no_result_can_be_made_of_are_one_line(
    tasks: Path,
    tmp_path: Path,
    command: str,
    change: Callable[[Rollout], Rollout],
    arms: Sequence[Arm],
    message: str,
) -> None:
    folder = write(tmp_path / "rollouts", [change(r) for r in honest() if r.episode.arm in arms])
    options = ("--dry-run", "--out", tmp_path / "result.json") if command == "submit" else ("--sample", "1")
    done = conflictvla(command, folder, "--tasks", tasks, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {message}")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "result.json").exists()


@pytest.mark.parametrize("agent", ["refuse", "ask_first"])
def test_a_scripted_agent_is_not_submitted_as_a_policy(tasks: Path, tmp_path: Path, agent: str) -> None:
    folder = write(tmp_path / "rollouts", [with_episode(r, policy_name=agent) for r in honest()])
    done = submit(folder, tasks, "--dry-run", "--out", tmp_path / "result.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"policy '{agent}' has the name of a scripted agent: give --scripted if it is that one" in done.stderr
    assert not (tmp_path / "result.json").exists()
    submit(folder, tasks, "--dry-run", "--scripted", "--out", tmp_path / "result.json")
    assert read_result(tmp_path / "result.json").kind == "scripted agent"


def test_what_is_missing_is_listed_and_nothing_is_sent(hub: Hub, tasks: Path, tmp_path: Path) -> None:
    address = publish_rollouts(tmp_path / "rollouts", honest()[:5], "rollouts-part")
    before = len(hub.store.repos["dataset", RESULTS].pull_requests)
    done = submit(address, tasks)
    assert done.returncode == 1
    full = 5 * len(load_instances(tasks))
    assert (
        f"- **complete**: `the full evaluation has {full - 5} more rollouts; missing under the prompts, initial states "
        f"and seeds that were run, 1 in all: {release()[2].instance_id} init1"
    ) in done.stdout
    assert len(hub.store.repos["dataset", RESULTS].pull_requests) == before


def test_untrusted_text_stays_text(tasks: Path, tmp_path: Path) -> None:
    evil = "![x](http://x/y.png) <script>alert(1)</script> @everyone"
    forged = [with_episode(r, policy_name=evil) for r in honest()]
    done = submit(write(tmp_path / "rollouts", forged), tasks, "--dry-run")
    assert done.returncode == 1
    assert "**names**" in done.stdout
    assert f"- policy: `{evil}`" in done.stdout


def test_nobody_can_foresee_which_rollouts_are_executed_again_unless_a_seed_is_given(
    tasks: Path, tmp_path: Path
) -> None:
    folder = write(tmp_path / "rollouts", honest())

    def seed(*options: str) -> int:
        done = conflictvla("verify", folder, "--tasks", tasks, "--sample", "1", "--json", *options)
        return int(json.loads(done.stdout)["seed"])

    assert seed() != seed()
    assert seed("--seed", "5") == 5


def test_two_submissions_at_once_become_two_pull_requests(hub: Hub, tasks: Path, tmp_path: Path) -> None:
    from conflictvla.builders.tasks_dataset.reading import load_instances
    from conflictvla.eval.submissions.submit import check_submission, fetch_submission, open_pull_request

    addresses = []
    for name in ("left", "right"):
        mine = [
            with_episode(r, policy_name=name, rollout_id=r.episode.rollout_id.replace("half_refusing", name))
            for r in honest()
        ]
        addresses.append(publish_rollouts(tmp_path / name, mine, f"rollouts-{name}"))
    checked = [check_submission(fetch_submission(address), load_instances(tasks)) for address in addresses]
    pulls: list[str] = []
    threads = [
        threading.Thread(target=lambda one=one: pulls.append(open_pull_request(one, RESULTS))) for one in checked
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(pulls)) == 2


@pytest.mark.parametrize(
    ("path", "size", "message"),
    [
        ("../outside.parquet", 1, "is not accepted"),
        ("/etc/passwd.json", 1, "is not accepted"),
        ("a\nb.json", 1, "is not accepted"),
        ("data/=cmd|x.json", 1, "is not accepted"),
        ("model.pkl", 1, "only .parquet"),
        ("run.py", 1, "only .parquet"),
        ("frames.npz", 1, "only .parquet"),
        ("data/big.parquet", 1 << 40, "at most"),
        ("x" * 300 + ".json", 1, "is not accepted"),
    ],
)
def test_paths_and_sizes_have_limits(path: str, size: int, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        check_listing("here", [("meta/info.json", 10), (path, size)])


def test_too_many_files_rows_or_bytes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DatasetError, match="2,001 files"):
        check_listing("here", [(f"{number}.json", 1) for number in range(2001)])
    # Rows that are all null take next to nothing; what they unpack to is what counts.
    zeros = pa.table({"x": pa.nulls(30_000_000)})
    pq.write_table(zeros, tmp_path / "bomb.parquet")
    assert (tmp_path / "bomb.parquet").stat().st_size < 100_000
    with pytest.raises(DatasetError, match="30,000,000 rows"):
        check_folder(tmp_path)


def test_a_file_of_another_kind_on_the_hub_is_refused_before_anything_is_fetched(
    hub: Hub, tasks: Path, tmp_path: Path
) -> None:
    write(tmp_path / "rollouts", honest()[:3])
    (tmp_path / "rollouts/policy.pkl").write_bytes(b"\x80\x04.")
    conflictvla("publish", tmp_path / "rollouts", "--repo-id", "ann/unknown", "--version", "1.0.0")
    done = submit("hf://ann/unknown@1.0.0", tasks)
    assert done.returncode == 2
    assert "policy.pkl: only .parquet" in done.stderr


@pytest.mark.parametrize("address", ["hf://ann/absent@1.0.0", "hf://ann", "nowhere"])
def test_what_is_not_there_is_one_line(tasks: Path, address: str) -> None:
    done = submit(address, tasks)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


RESULT_DAMAGES = {
    "no JSON": (lambda text: text[:-20], "unreadable"),
    "no object": (lambda text: f"[{text}]", "not a JSON object"),
    "an unknown field": (
        lambda text: text.replace('"kind"', '"verified\\n": true, "kind"'),
        r"field 'verified\\n' is not known: write it with  conflictvla submit",
    ),
    "a missing field": (lambda text: text.replace('"rollouts": 6,', ""), "field 'rollouts' is missing"),
    "an unknown kind": (
        lambda text: text.replace('"policy",', '"best policy",'),
        "field 'kind' is none of policy, scripted agent",
    ),
    "a rate above one": (
        lambda text: json.dumps(_with_rgsr(json.loads(text), 1.5)),
        r"field 'rows\[0\].measures.RGSR.value' is '1.5', not within \[0, 1\]",
    ),
    "a rate that is none": (
        lambda text: json.dumps(_with_rgsr(json.loads(text), "=1+1")),
        r"field 'rows\[0\].measures.RGSR.value' is '=1\+1', not within \[0, 1\]",
    ),
    "an interval alone": (
        lambda text: json.dumps(_with_rgsr(json.loads(text), None, low=0.1)),
        "RGSR has an interval and no value",
    ),
    "NaN": (lambda text: text.replace('"rollouts": 6', '"rollouts": NaN'), "NaN is no number of JSON"),
    "a negative count": (
        lambda text: text.replace('"rollouts": 6', '"rollouts": -6'),
        "'rollouts' is '-6', not a count",
    ),
    "a count that is none": (
        lambda text: text.replace('"rollouts": 6', '"rollouts": true'),
        "'rollouts' is 'True', not a count",
    ),
    "a control character": (
        lambda text: text.replace("half_refusing", "half\\u0000refusing"),
        "field 'policy_name' is no printable text of at most 300 characters",
    ),
    "a text too long": (
        lambda text: text.replace("half_refusing", "x" * 1000),
        "field 'policy_name' is no printable text of at most 300 characters",
    ),
    "no name": (lambda text: text.replace("half_refusing", ""), "field 'policy_name' is empty"),
    "too large a file": (lambda text: text + " " * (1 << 20), "is larger than 1,048,576 bytes"),
    "a nest without end": (lambda text: "[" * 200_000, "unreadable"),
    "another layout": (
        lambda text: text.replace('"results_version": "2.0"', '"results_version": "9"'),
        "results_version is 9, this version reads 2.0",
    ),
    "more than everything": (
        lambda text: text.replace('"rollouts": 6', '"rollouts": 7000'),
        "'coverage.rollouts' is more than a full evaluation has",
    ),
    "a completeness of one's own": (
        lambda text: text.replace('"partial"', '"more than complete"'),
        "field 'coverage.kind' is none of complete, lite, partial, off protocol",
    ),
    "an effect that is none": (
        lambda text: text.replace('"premise_effect": null', '"premise_effect": 7'),
        r"field 'rows\[0\].premise_effect' is no object",
    ),
    "an effect of no controls": (
        lambda text: text.replace('"controls": 0', '"controls": 1'),
        "premise_effect is null where controls were run, or is there without them",
    ),
    "more controls than pairs": (
        lambda text: text.replace('"controls": 0', '"controls": 9'),
        "effect_tasks is more than controls, or controls more than n",
    ),
    "more base tasks than controls": (
        lambda text: text.replace('"effect_tasks": 0', '"effect_tasks": 1'),
        "effect_tasks is more than controls, or controls more than n",
    ),
    "no rows": (lambda text: json.dumps(json.loads(text) | {"rows": []}), "field 'rows' is empty"),
    "rows twice": (
        lambda text: json.dumps(_rows_twice(json.loads(text))),
        "two rows are of the same prompt condition, family and level",
    ),
    "a row of another family": (
        lambda text: text.replace('"family": "all"', '"family": "none"', 1),
        r"field 'rows\[0\].family' is none of all, instruction",
    ),
}


def _with_rgsr(content: dict, value: object, **ends: object) -> dict:  # type: ignore[type-arg]
    content["rows"][0]["measures"]["RGSR"] |= {"value": value, **ends}
    return content


def _rows_twice(content: dict) -> dict:  # type: ignore[type-arg]
    content["rows"].append(content["rows"][0])
    return content


@pytest.mark.parametrize("name", sorted(RESULT_DAMAGES))
def test_a_results_file_is_read_with_suspicion(tasks: Path, tmp_path: Path, name: str) -> None:
    folder = write(tmp_path / "rollouts", honest())
    submit(folder, tasks, "--dry-run", "--out", tmp_path / "result.json")
    text = (tmp_path / "result.json").read_text()
    damage, message = RESULT_DAMAGES[name]
    (tmp_path / "result.json").write_text(damage(text))
    with pytest.raises(DatasetError, match=message) as caught:
        read_result(tmp_path / "result.json")
    assert "\n" not in str(caught.value)
