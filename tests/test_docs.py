"""Every command and snippet of the README and of the site runs, in order, and prints what it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from conflictvla.cli.console import OUT
from conflictvla.eval.analyses import registry

from .eval.in_process import Done, conflictvla
from .hub.hub_server import Hub
from .pages import PAGES, README, REPOSITORY, Reader, all_pages, check_command, snippets

SLOW = {"evaluate/lerobot.md", "evaluate/openpi.md", "evaluate/vla-eval.md"}
"""Pages whose policies want pictures, which take long to render without a GPU."""

CHECKPOINT = "outputs/train/act/checkpoints/last/pretrained_model"

COMMANDS = {
    command
    for page in all_pages()
    for snippet in snippets(page)
    if snippet.language in ("console", "bash")
    for command, _ in snippet.commands()
}


@pytest.fixture(scope="module")
def recorded() -> dict[str, tuple[Path, Done]]:
    return {}


@pytest.fixture(autouse=True)
def registry_as_it_was() -> Iterator[None]:
    """A page that registers an analysis does so for itself alone."""
    before = list(registry._ANALYSES)
    yield
    registry._ANALYSES[:] = before


def train_checkpoint(folder: Path) -> None:
    """A tiny checkpoint where a page expects the reader's own, trained on a rollout of a scripted agent."""
    from .eval.policies.lerobot import tiny_checkpoints as tiny

    case = "libero_goal/turn_on_the_stove/grounding/L1/00*"
    conflictvla(
        "run", "--policy", "persist", "--cases", case, "--prompts", "P0", "--init-states", "0", "--out", "shown"
    )
    rollout, instruction = "persist/libero_goal/turn_on_the_stove/reference/P0/init0/seed0", "turn on the stove"
    shown = tiny.read_demonstration(Path("shown/rollouts/persist"), rollout, instruction, frames=20)
    tiny.train(tiny.tiny_act(), [shown], folder)


def _name(page: Path) -> str:
    return str(page.relative_to(REPOSITORY if page == README else PAGES))


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if _name(page) in SLOW else (), id=_name(page)) for page in all_pages()],
)
def test_a_page_can_be_followed_from_top_to_bottom(
    page: Path,
    hub: Hub,
    recorded: dict[str, tuple[Path, Done]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in {"COLUMNS": "200", "NO_COLOR": "1", "HF_TOKEN": "hf_you"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(OUT, "_width", 200)  # read from the environment when the console was made
    if CHECKPOINT in page.read_text(encoding="utf-8"):
        train_checkpoint(tmp_path / CHECKPOINT)
    Reader(folder=tmp_path, recorded=recorded).follow(page)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_exists_and_takes_these_arguments(command: str) -> None:
    check_command(command)


@pytest.mark.parametrize("page", all_pages(), ids=_name)
def test_every_picture_and_file_that_is_named_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)|\]\(([^)#:]+\.md)[)#]", text):
        assert (page.parent / (name[0] or name[1])).is_file(), name
    for name in re.findall(r"`([A-Z]+\.(?:md|cff))`", text):
        assert (REPOSITORY / name).is_file(), name
