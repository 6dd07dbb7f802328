"""Objects and contacts as recorded, against the simulator's own, in a rollout that grasps."""

from __future__ import annotations

import numpy as np
import pytest

from conflictvla.builders.rollouts.schema import OBJECT_SLOTS, Rollout
from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.policies.scripted.agents import Persist
from conflictvla.eval.rollouts.jobs import Job
from conflictvla.eval.rollouts.recorder import Recorder
from conflictvla.eval.rollouts.rollout import run_rollout
from conflictvla.eval.rollouts.versions import installed_versions
from conflictvla.toolkit.errors import InvalidInputError
from conflictvla.toolkit.libero.base_tasks import base_task
from conflictvla.toolkit.records import Arm
from conflictvla.toolkit.simulation.scene import Scene

TASK = "put_the_bowl_on_the_plate"


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene(base_task("libero_goal", TASK))


@pytest.fixture(scope="module")
def rollout(scene: Scene) -> Rollout:
    instance = next(i for i in load_instances() if i.base_task == TASK and i.arm is Arm.REFERENCE)
    return run_rollout(scene, Persist(), Job(instance=instance, init_state=0, seed=0), versions=installed_versions())


def _touching(scene: Scene, name: str) -> int:
    """0, 1 or 2 as recorded, from the names of geoms and bodies alone."""
    fingers, touched = set(), False
    for contact in scene.data.contact:
        names = [(scene.model.geom(g).name, scene.model.body(scene.model.geom_bodyid[g]).name) for g in contact.geom]
        for (gripper, _), (_, body) in (names, names[::-1]):
            if gripper.startswith("gripper0_") and body.startswith(f"{name}_"):
                touched = True
                fingers |= {finger for finger in ("finger1", "finger2") if finger in gripper}
    return 2 if len(fingers) == 2 else int(touched)


def test_object_poses_and_contacts_are_the_simulators(scene: Scene, rollout: Rollout) -> None:
    episode, frames = rollout.episode, rollout.frames
    assert episode.objects == ("akita_black_bowl_1", "cream_cheese_1", "wine_bottle_1", "plate_1")
    assert episode.fixtures == ("wooden_cabinet_1", "flat_stove_1", "wine_rack_1")
    assert episode.goal_entities == ("akita_black_bowl_1", "plate_1")
    scene.reset(0)
    for t, action in enumerate(frames["action"]):
        for slot, name in enumerate(episode.objects):
            body = scene.data.body(f"{name}_main")
            pos = frames["observation.object_pos_m"][t, 3 * slot : 3 * slot + 3]
            quat = frames["observation.object_quat_wxyz"][t, 4 * slot : 4 * slot + 4]
            np.testing.assert_array_equal(pos, body.xpos.astype(np.float32))
            np.testing.assert_array_equal(quat, body.xquat.astype(np.float32))
        found = frames["observation.gripper_contact"][t]
        for slot, name in (*enumerate(episode.objects), *enumerate(episode.fixtures, OBJECT_SLOTS)):
            assert found[slot] == _touching(scene, name), (t, name)
        scene.step(action)
    assert episode.final_object_pos_m is not None
    assert episode.final_gripper_contact is not None
    for slot, name in enumerate(episode.objects):
        final = scene.data.body(f"{name}_main").xpos.astype(np.float32)
        np.testing.assert_array_equal(episode.final_object_pos_m[3 * slot : 3 * slot + 3], final)
        assert episode.final_gripper_contact[slot] == _touching(scene, name)


def test_the_bowl_is_held_between_both_fingers_and_nothing_else_is(rollout: Rollout) -> None:
    contact = rollout.frames["observation.gripper_contact"]
    assert (contact[:, 0] == 2).sum() > 20
    assert not (contact[:, 1:] == 2).any()


def test_unused_slots_are_zero(rollout: Rollout) -> None:
    assert not rollout.frames["observation.object_pos_m"][:, 12:].any()
    assert not rollout.frames["observation.object_quat_wxyz"][:, 16:].any()
    assert not rollout.frames["observation.gripper_contact"][:, [*range(4, 10), 13]].any()


def test_a_scene_with_too_many_objects_is_refused(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conflictvla.eval.rollouts.recorder.OBJECT_SLOTS", 3)
    with pytest.raises(InvalidInputError, match="4 movable objects, but a recording has slots for 3: akita_black_bowl"):
        Recorder(scene, ())
