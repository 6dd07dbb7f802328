"""Submissions to the leaderboard: checked on this machine, shown as a reviewer sees them, sent as a pull request."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...builders.hub_release import hub_refusals
from ...toolkit.counting import counted, noun_for
from ...toolkit.errors import InvalidInputError
from ...toolkit.markdown import code_span
from ...toolkit.records import Instance
from ..policies.scripted.agents import AGENTS
from ..recordings.reading import find_dataset, read_rollouts
from ..recordings.sources import HUB, hub_address, local_folder
from ..rollouts.replay import COMPARED, REPLAYED
from ..scores.formats import markdown
from ..scores.scores import Scores, score_rollouts
from ..scores.text_tables import text_table
from .checks.findings import SubmissionFinding
from .checks.rollout_checks import check_rollouts
from .coverage import coverage_of
from .results import POLICY, Result, result_of
from .results_file import RESULTS_FOLDER, result_json
from .untrusted.limits import check_folder, check_listing
from .untrusted.trial_reading import try_reading


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionSource:
    """Where submitted rollouts are.

    Attributes:
        folder: On this machine.
        repo_id: Their dataset on the Hub; empty where they are only on this machine.
        commit: Its commit; empty where ``repo_id`` is.
    """

    folder: Path
    repo_id: str
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A checked submission.

    Attributes:
        source: Where its rollouts are.
        findings: What is wrong; only a submission without any can be opened as a pull request.
        scores: Computed from the trajectories.
        result: What they give for the leaderboard.
    """

    source: SubmissionSource
    findings: tuple[SubmissionFinding, ...]
    scores: Scores
    result: Result


def fetch_submission(address: str | Path) -> SubmissionSource:
    """Fetch rollouts and check their limits; on the Hub those of the listing first, before anything is fetched.

    Args:
        address: A folder with one dataset, or ``hf://OWNER/NAME@REVISION``.

    Raises:
        DatasetError: They exceed the limits, cannot be fetched, or end the process that reads them.
        InvalidInputError: The address cannot be used.
        HubError: The Hub refused.
    """
    if not str(address).startswith(HUB):
        dataset = find_dataset(address)
        check_folder(dataset)
        try_reading(sorted(dataset.rglob("*.parquet")))
        return SubmissionSource(folder=dataset, repo_id="", commit="")
    repo_id, revision = hub_address(str(address))
    with hub_refusals(repo_id):
        from huggingface_hub import HfApi, RepoFile

        api = HfApi()
        commit = str(api.dataset_info(repo_id, revision=revision).sha)
        entries = api.list_repo_tree(repo_id, repo_type="dataset", revision=commit, recursive=True)
        files = [(entry.path, entry.size) for entry in entries if isinstance(entry, RepoFile)]
    check_listing(f"hf://{repo_id}", files)
    folder = find_dataset(local_folder(f"{HUB}{repo_id}@{commit}"))
    check_folder(folder)
    try_reading(sorted(folder.rglob("*.parquet")))
    return SubmissionSource(folder=folder, repo_id=repo_id, commit=commit)


def check_submission(
    source: SubmissionSource, instances: Sequence[Instance], *, kind: str = POLICY, lite: Collection[str] = ()
) -> Submission:
    """Check and score submitted rollouts, without a simulator.

    Args:
        source: Where they are.
        instances: The task release, all its arms.
        kind: One of ``results.KINDS``.
        lite: Ids of the cases in the release's lite selection.

    Raises:
        DatasetError: The dataset is damaged.
        InvalidInputError: It holds several policies, or a scripted agent that is not marked as such.
    """
    rollouts = read_rollouts(source.folder, REPLAYED, optional=COMPARED)
    scores = score_rollouts([rollouts])
    coverage = coverage_of(rollouts, instances, lite)
    result = result_of(scores, coverage=coverage, repo_id=source.repo_id, commit=source.commit, kind=kind)
    if kind == POLICY and result.policy_name in AGENTS:
        raise InvalidInputError(
            f"policy '{result.policy_name}' has the name of a scripted agent: give --scripted if it is that one, or "
            "record yours under another name"
        )
    found = check_rollouts(rollouts, instances, lite)
    return Submission(source=source, findings=found, scores=scores, result=result)


def review_page(submission: Submission) -> str:
    """What a reviewer sees, as markdown: the policy, what its rollouts cover, their scores and what is wrong.

    Text from the submission stands in code spans, so that none of it is taken for markup or a mention.
    """
    result = submission.result
    covered = [f"{prompt}: {counted(row.n, 'pair')}" for prompt in result.prompts if (row := result.row(prompt))]
    where = f"{result.repo_id} at {result.commit}" if result.repo_id else "only on this machine"
    facts = {
        "policy": code_span(result.policy_name),
        "revision": code_span(result.policy_revision),
        "kind": result.kind,
        "rollouts": f"{result.rollouts:,}, {code_span(where)}",
        "content": code_span(result.rollouts_sha256),
        "covers": f"{result.coverage}; {', '.join(covered)}; {_listed('initial state', result.init_states)}; "
        f"{_listed('seed', result.seeds)}",
        "versions": f"protocol {code_span(result.protocol_version)}, tasks {code_span(result.tasks_version)}, "
        f"MuJoCo {code_span(result.mujoco_version)}",
    }
    lines = [f"# Results of {code_span(result.policy_name)}", ""]
    lines += [f"- {name}: {value}" for name, value in facts.items()]
    lines += ["", markdown(text_table(submission.scores, "overall")), "## Checks", ""]
    lines += [f"- **{found.check}**: {code_span(found.message, 1000)}" for found in submission.findings]
    lines += [] if submission.findings else ["Complete, paired and as the task release has it."]
    return "\n".join(lines) + "\n"


def open_pull_request(submission: Submission, leaderboard: str) -> str:
    """Open a pull request that adds the results file to the leaderboard; returns its address.

    Raises:
        InvalidInputError: Something is wrong with the submission, its rollouts are not on the Hub, or the same results
            are there already.
        HubError: The Hub refused.
    """
    from huggingface_hub import CommitOperationAdd, HfApi

    if submission.findings:
        raise InvalidInputError(
            f"{counted(len(submission.findings), 'objection')}, the first: {submission.findings[0]}"
        )
    if not submission.source.repo_id:
        raise InvalidInputError(
            f"{submission.source.folder}: reviewers need the rollouts on the Hub: conflictvla publish  them, then "
            "submit hf://OWNER/NAME@VERSION"
        )
    result = submission.result
    path = f"{RESULTS_FOLDER}/{result.file_name}"
    with hub_refusals(leaderboard):
        api = HfApi()
        if api.file_exists(leaderboard, path, repo_type="dataset"):
            raise InvalidInputError(f"{leaderboard}: has {path} already: these rollouts were submitted before")
        commit = api.create_commit(
            leaderboard,
            [CommitOperationAdd(path, result_json(result).encode())],
            commit_message=f"Add results of {result.policy_name[:60]}",
            commit_description=review_page(submission),
            repo_type="dataset",
            create_pr=True,
        )
    return str(commit.pr_url)


def _listed(noun: str, numbers: Sequence[int]) -> str:
    return f"{noun_for(len(numbers), noun)} {', '.join(map(str, numbers))}"
