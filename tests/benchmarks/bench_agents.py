"""How often ``persist`` completes the reference goal, and what the measures say of each scripted agent.

Beside the shared figures, ``build/agents.json`` keeps the successes of each task and the measures of each agent.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.policies.scripted.agents import AGENTS
from conflictvla.eval.recordings.reading import read_rollouts
from conflictvla.eval.rollouts.run import run_policy, with_references
from conflictvla.eval.scores.scores import score
from conflictvla.eval.selection import select_conflicts
from conflictvla.toolkit.records import SUITES, Arm, Prompt

from .conftest import RESULTS

INIT_STATES = range(5)
CASES = "libero_goal/*/grounding/L1/00-*"
"""One case of each task of a suite, for the agents' measures."""

MEASURES = ("PCSR", "RGSR", "TAR", "TS", "Early20_TS", "AMS", "n")
KEPT = RESULTS.with_name("agents.json")


def _keep(name: str, found: object) -> None:
    KEPT.parent.mkdir(exist_ok=True)
    before = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    KEPT.write_text(json.dumps({**before, name: found}, indent=2) + "\n", encoding="utf-8")


@pytest.mark.parametrize("suite", SUITES)
def test_persist_on_every_task(suite: str, tmp_path: Path, figures: dict[str, float]) -> None:
    references = [i for i in load_instances() if i.arm is Arm.REFERENCE and i.prompt == Prompt.P0 and i.suite == suite]
    run = run_policy("persist", references, tmp_path, init_states=INIT_STATES)
    assert run.dataset is not None
    episodes = read_rollouts(run.dataset).episodes.to_pylist()
    successes = Counter({instance.base_task: 0 for instance in references})
    successes.update(episode["base_task"] for episode in episodes if episode["success"])
    _keep(f"persist_successes_of_5_{suite}", dict(successes))
    figures[f"persist_success_rate_{suite}"] = sum(successes.values()) / len(episodes)
    figures[f"persist_fewest_of_5_{suite}"] = min(successes.values())
    assert len(episodes) == len(references) * len(INIT_STATES)
    assert min(successes.values()) >= 3


@pytest.mark.parametrize("agent", AGENTS)
def test_measures_of_each_agent(agent: str, tmp_path: Path) -> None:
    instances = load_instances()
    chosen = with_references(select_conflicts(instances, CASES, [Prompt.P0]), instances)
    run = run_policy(agent, chosen, tmp_path, init_states=[0])
    assert run.dataset is not None
    (row,) = score(run.dataset).table("overall").to_pylist()
    _keep(agent, {measure: row[measure] for measure in MEASURES})
    assert row["n"] == 10
