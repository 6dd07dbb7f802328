"""What may be published as a release, and with which card: tasks, rollouts or leaderboard results.

Each is read and checked completely before anything is sent, so that whatever a tag names can be loaded.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pyarrow as pa

from ...builders.hub_release import Release, plan_release
from ...builders.rollouts.schema import FRAME_FEATURES, OPTIONAL_FEATURES
from ...builders.tasks_dataset.columns import CONFIGS, CONTROLS, PROBES
from ...builders.tasks_dataset.reading import has_controls, has_probes, load_tasks
from ...toolkit.counting import counted
from ...toolkit.errors import DatasetError, InvalidInputError
from ...toolkit.markdown import code_span, markdown_table
from ..recordings.finding import find_dataset, find_runs
from ..recordings.reading import read_rollouts
from ..recordings.video_files import RENDERED
from ..scores.formats import markdown
from ..scores.scores import score
from ..scores.text_tables import text_table
from ..scoring.pairs import SAME_PROMPT

LEROBOT_TAG = "v3.0"
"""Tag by which LeRobot finds a dataset of its format; it goes with the newest version."""


def plan_publication(folder: Path, *, repo_id: str, version: str) -> Release:
    """Check a dataset and list what its release would consist of; nothing is sent.

    Args:
        folder: A task release, a folder with one dataset of rollouts, or a folder with leaderboard results.
        repo_id: ``OWNER/NAME`` on the Hub.
        version: Such as ``1.0.0``; a task release must be of that version itself.

    Raises:
        DatasetError: It is none of these, or damaged.
        InvalidInputError: Name or version cannot be used.
    """
    tags: tuple[str, ...] = ()
    if (folder / "instances").is_dir():
        card = _tasks_card(folder, version)
    elif (folder / "results").is_dir():
        card = _results_card(folder, repo_id, version)
    else:
        folder = _rollouts_folder(folder)
        card, tags = _rollouts_card(folder, repo_id, version), (LEROBOT_TAG,)
    note = _template("release_note.md").format(repo_id=repo_id, version=version)
    return plan_release(folder, repo_id=repo_id, version=version, card=card + note, moving_tags=tags)


def _rollouts_folder(folder: Path) -> Path:
    """The one dataset of rollouts in a folder, which may lie deeper."""
    runs = find_runs(folder)
    if not runs.datasets and not runs.unfinished:
        raise DatasetError(
            f"{folder}: neither a task release (instances/), nor rollouts (meta/info.json), nor results (results/)"
        )
    dataset = find_dataset(folder)
    for run in runs.unfinished:
        if run.dataset == dataset:
            raise DatasetError(str(run))
    return dataset


def _tasks_card(folder: Path, version: str) -> str:
    """A release has the version of its probes, which came last; its cases have that of the release they came with."""
    of_cases = (*CONFIGS, CONTROLS) if has_controls(folder) else CONFIGS
    newest = (PROBES,) if has_probes(folder) else of_cases
    for config in dict.fromkeys((*of_cases, *newest)):
        versions = set(load_tasks(config, folder)["tasks_version"])
        if len(versions) != 1 or (config in newest and versions != {version}):
            raise InvalidInputError(
                f"{folder}: {config} are tasks {', '.join(sorted(versions))}, not --version {version}: give the "
                "version that they were built as"
            )
    card = folder / "README.md"
    if not card.is_file():
        raise DatasetError(f"{card}: is missing; build the tasks again with  conflictvla tasks build")
    try:
        return card.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DatasetError(f"{card}: is not UTF-8; build the tasks again with  conflictvla tasks build") from error


def _rollouts_card(folder: Path, repo_id: str, version: str) -> str:
    needed = [name for name in FRAME_FEATURES if name not in OPTIONAL_FEATURES]
    rollouts = read_rollouts(folder, needed, optional=list(OPTIONAL_FEATURES))
    scores = score(folder)
    refused = (*scores.refusals, *scores.refused_controls)
    same = [refusal.rollout_id for refusal in refused if refusal.field == SAME_PROMPT]
    if same:
        raise InvalidInputError(
            f"{folder}: {counted(len(same), 'rollout')} with the {SAME_PROMPT}, the first {same[0]}: record them with "
            "prompts that hold the instruction"
        )
    provenance = scores.provenance
    recorded = {entry.field: entry.values for entry in provenance.recorded}
    prompts = sorted(set(scores.table("overall")["prompt"].to_pylist()))
    return _template("rollouts_card.md").format(
        repo_id=repo_id,
        version=version,
        policy=" and ".join(recorded["policy_name"]),
        rollouts=f"{provenance.rollouts:,}",
        conflicts=f"{provenance.conflicts:,}",
        references=f"{provenance.references:,}",
        controls=f", {provenance.controls:,} on cases with their conflict repaired" if provenance.controls else "",
        pairs=f"{scores.pairs.num_rows:,}",
        videos=_videos_line(folder),
        prompt=" and ".join(prompts) or "no pairs",
        prompts=_prompts_table(rollouts.episodes),
        scores=markdown(text_table(scores, "overall")),
        recorded=markdown_table(
            ("field", "values"),
            [(f"`{name}`", ", ".join(map(code_span, values))) for name, values in recorded.items()],
            labels=2,
        ),
    )


def _prompts_table(episodes: pa.Table) -> str:
    """Each prompt condition with the version of its words and one exact string."""
    columns = ["prompt", "prompt_version", "prompt_text"]
    distinct = episodes.select(columns).group_by(columns[:2]).aggregate([("prompt_text", "min")])
    rows = sorted(distinct.select([*columns[:2], "prompt_text_min"]).to_pylist(), key=lambda row: str(row["prompt"]))
    cells = [tuple(code_span(value or "not recorded", 400) for value in row.values()) for row in rows]
    return markdown_table(("prompt", "version", "such as"), cells, labels=3)


def _videos_line(folder: Path) -> str:
    """The card's line about videos."""
    rendered = len([*(folder / RENDERED).glob("*.mp4")])
    if rendered == 0:
        return "`conflictvla render` makes videos of them."
    return f"`{RENDERED}` holds videos of {rendered} of them, and `conflictvla render` makes the others."


def _results_card(folder: Path, repo_id: str, version: str) -> str:
    from .results_file import read_results

    entries = read_results(folder)
    results = [entry.result for entry in entries]
    rows = [tuple(map(code_span, (one.policy_name, one.policy_revision, one.repo_id))) for one in results]
    return _template("results_card.md").format(
        repo_id=repo_id,
        version=version,
        count=len(entries),
        entries=markdown_table(("policy", "revision", "rollouts"), rows, labels=3),
    )


def _template(name: str) -> str:
    return resources.files("conflictvla.dataset_cards").joinpath(name).read_text(encoding="utf-8")
