"""What recording and looking cost: against the same rollout without either."""

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from conflictvla.builders.rollouts.lerobot_dataset import write_lerobot_dataset
from conflictvla.builders.rollouts.shards import write_shard
from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.policies.interface import Episode, Observation, PolicyInfo
from conflictvla.eval.rollouts.jobs import Job
from conflictvla.eval.rollouts.recorder import Recorder
from conflictvla.eval.rollouts.rollout import run_rollout
from conflictvla.eval.rollouts.versions import installed_versions
from conflictvla.toolkit.arrays import FloatArray
from conflictvla.toolkit.errors import InvalidInputError
from conflictvla.toolkit.language.plan import Plan, Reference, Relation, Step, Verb
from conflictvla.toolkit.language.plan_json import plan_to_json
from conflictvla.toolkit.libero.base_tasks import base_task
from conflictvla.toolkit.records import Instance
from conflictvla.toolkit.simulation.pictures.rendering import CAMERAS, camera_of
from conflictvla.toolkit.simulation.scene import Scene
from conflictvla.toolkit.step_goals.meter import StepGoalMeter

CHUNK = 10
STEPS = 200
PAIRS = 25
VIEW_STEPS = 20
SIZE = 256
ACTION = np.array([0.1, 0.05, -0.1, 0.0, 0.0, 0.05, -1.0])


class Replans:
    """Moves in chunks; looks at both cameras when asked for a new one, where it has eyes."""

    def __init__(self, *, eyes: bool, chunk: int = CHUNK) -> None:
        self.info = PolicyInfo(name="replans", revision="1")
        self._eyes, self._chunk = eyes, chunk

    def reset(self, episode: Episode) -> None:
        """Nothing carries over."""

    def act(self, observation: Observation) -> FloatArray:
        if self._eyes:
            for camera in CAMERAS:
                observation.image(camera, SIZE)
        return np.tile(ACTION, (self._chunk, 1))


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene(base_task("libero_goal", "put_the_bowl_on_the_plate"))


def _instance(steps: int) -> Instance:
    found = next(i for i in load_instances() if i.base_task == "put_the_bowl_on_the_plate" and i.case_id is None)
    return dataclasses.replace(found, horizon=steps)


def _bare(scene: Scene) -> None:
    """The same simulation, nothing observed and nothing recorded."""
    scene.reset(0)
    for _ in range(STEPS):
        scene.step(ACTION)
        scene.succeeded()


def _cpu_seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def test_recording(scene: Scene, tmp_path: Path, figures: dict[str, float]) -> None:
    versions, instance = installed_versions(), _instance(STEPS)

    def recorded() -> None:
        rollout = run_rollout(
            scene, Replans(eyes=False), Job(instance=instance, init_state=0, seed=0), versions=versions
        )
        write_shard(rollout, tmp_path / "shards")

    # A few per cent drown in what else a machine does: in turn, in processor time, and the fastest of many.
    bare_s = recorded_s = np.inf
    for _ in range(PAIRS):
        bare_s = min(bare_s, _cpu_seconds(lambda: _bare(scene)))
        recorded_s = min(recorded_s, _cpu_seconds(recorded))
    figures["record_overhead_pct"] = 100.0 * (recorded_s / bare_s - 1.0)

    (shard,) = (tmp_path / "shards").iterdir()
    figures["shard_bytes_per_frame"] = shard.stat().st_size / STEPS
    started = time.perf_counter()
    write_lerobot_dataset([shard] * 20, tmp_path / "set", repo_id="conflictvla/bench")
    figures["lerobot_frames_written_per_s"] = 20 * STEPS / (time.perf_counter() - started)
    for part in ("data", "meta", "sim_states"):
        size = sum(file.stat().st_size for file in (tmp_path / "set" / part).rglob("*") if file.is_file())
        figures[f"lerobot_{part}_bytes_per_frame"] = size / (20 * STEPS)


def test_step_goals(scene: Scene, figures: dict[str, float]) -> None:
    """What looking for step goals adds to a rollout: by LIBERO's predicates, and by boxes in every state."""
    bowl, stove = Reference(noun="bowl"), Reference(noun="stove")
    beside = Step(verb=Verb.PUT, object=bowl, relation=Relation.NEXT_TO, destination=stove)
    plans = {"": _instance(STEPS).plan, "_by_boxes": plan_to_json(Plan(steps=(beside, beside)))}
    bare_s = min(_cpu_seconds(lambda: _bare(scene)) for _ in range(PAIRS))
    scene.reset(0)
    recorder = Recorder(scene, ())
    for _ in range(STEPS):
        recorder.append(ACTION.astype(np.float32))
        scene.step(ACTION)
    states = recorder.finish().sim_states
    scene.reset(0)
    for name, plan in plans.items():

        def measured(plan: str = plan) -> None:
            StepGoalMeter(scene, 0, plan).finish(states, recorder.contacts_and_poses())

        first_s = _cpu_seconds(measured)  # looks at the scene and its initial state for the first time
        figures[f"step_goals{name}_first_ms"] = first_s * 1e3
        figures[f"step_goals{name}_overhead_pct"] = 100.0 * min(_cpu_seconds(measured) for _ in range(PAIRS)) / bare_s
        assert figures[f"step_goals{name}_overhead_pct"] < 5.0


def test_looking_only_when_asked(scene: Scene, figures: dict[str, float], best_seconds: Callable[..., float]) -> None:
    try:
        camera_of(scene, SIZE)
    except InvalidInputError as error:
        pytest.skip(str(error))
    versions, instance = installed_versions(), _instance(VIEW_STEPS)

    def rolled_out(chunk: int) -> Callable[[], object]:
        policy = Replans(eyes=True, chunk=chunk)
        return lambda: run_rollout(scene, policy, Job(instance=instance, init_state=0, seed=0), versions=versions)

    every_s = best_seconds(rolled_out(1), repeats=3)
    lazy_s = best_seconds(rolled_out(CHUNK), repeats=3)
    figures["eager_render_step_ms"] = every_s / VIEW_STEPS * 1e3
    figures["lazy_render_step_ms"] = lazy_s / VIEW_STEPS * 1e3
    figures["lazy_render_speedup"] = every_s / lazy_s
    assert lazy_s < every_s
