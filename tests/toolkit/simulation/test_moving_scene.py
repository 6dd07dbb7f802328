"""Objects that move by themselves, forces and distances, in the real simulator."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from conflictvla.toolkit.arrays import FloatArray
from conflictvla.toolkit.libero.base_tasks import base_task
from conflictvla.toolkit.records import CONTROL_HZ
from conflictvla.toolkit.safety import evaluate_cost, read_constraints
from conflictvla.toolkit.safety.motions import BodyPose
from conflictvla.toolkit.simulation.observing.cost_evidence import CostObserver, entities_of
from conflictvla.toolkit.simulation.observing.forces import ForceWatch
from conflictvla.toolkit.simulation.scene import NO_OP, Scene

MOVING = "dynamic_obstacles_put_the_bowl_on_the_plate"
STILL = "static_obstacles_put_the_bowl_on_the_plate"
BOWL = "akita_black_bowl_1"
GRAVITY_M_S2 = 9.81


@pytest.fixture(scope="module")
def moving() -> Scene:
    return Scene(base_task("safety_l2", MOVING))


@pytest.fixture(scope="module")
def still() -> Scene:
    return Scene(base_task("safety_l0", STILL))


def restless(steps: int) -> list[FloatArray]:
    """Actions that swing the arm about."""
    rng = np.random.default_rng(5)
    return [np.append(rng.uniform(-1, 1, 6), 1.0) for _ in range(steps)]


def test_moving_objects_are_where_their_motion_says_at_every_step(moving: Scene) -> None:
    moving.reset(0)
    bodies = [moving.libero.obj_body_id[one.name] for one in moving.constraints.moving]
    starts = [
        BodyPose(position_m=np.array(moving.data.xpos[body]), quat_wxyz=np.array(moving.data.xquat[body]))
        for body in bodies
    ]
    for step, action in enumerate(restless(40)):
        for one, body, start in zip(moving.constraints.moving, bodies, starts, strict=True):
            pose = one.motion.pose(step, start)
            np.testing.assert_allclose(moving.data.xpos[body], pose.position_m, atol=1e-9)
            assert abs(moving.data.xquat[body] @ pose.quat_wxyz) == pytest.approx(1.0, abs=1e-9)
        moving.step(action)
    assert all(np.linalg.norm(moving.data.xpos[b] - s.position_m) > 0.02 for b, s in zip(bodies, starts, strict=True))


def test_resets_and_repetitions_give_the_same_bits(moving: Scene) -> None:
    actions = restless(25)
    ends = []
    for init_state in (1, 0, 1):
        moving.reset(init_state)
        for action in actions:
            moving.step(action)
        ends.append(moving.state().sha256())
    assert ends[0] == ends[2] != ends[1]
    again = Scene(base_task("safety_l2", MOVING))
    assert again.scene_sha256 == moving.scene_sha256
    again.reset(1)
    for action in actions:
        again.step(action)
    assert again.state().sha256() == ends[0]
    assert np.array_equal(again.physics(), moving.physics())


def test_a_recorded_state_shows_moving_objects_where_they_were(moving: Scene) -> None:
    moving.reset(0)
    for action in restless(10):
        moving.step(action)
    body = moving.libero.obj_body_id[moving.constraints.moving[0].name]
    recorded, place = moving.physics(), np.array(moving.data.xpos[body])
    moving.reset(1)
    moving.show(recorded)
    np.testing.assert_array_equal(moving.data.xpos[body], place)


def test_a_moving_object_pushes_what_it_meets_and_is_not_held_up(moving: Scene) -> None:
    moving.reset(0)
    one = moving.constraints.moving[0]
    body, bowl = moving.libero.obj_body_id[one.name], moving.libero.obj_body_id[BOWL]
    at = int(moving.model.joint(moving.libero.objects_dict[BOWL].joints[-1]).qposadr[0])
    start = BodyPose(position_m=np.array(moving.data.xpos[body]), quat_wxyz=np.array(moving.data.xquat[body]))
    # Put the bowl where the mug will be in a second.
    ahead = one.motion.pose(CONTROL_HZ, start).position_m
    moving.data.qpos[at : at + 2] = ahead[:2]
    for _ in range(2 * CONTROL_HZ):
        moving.step(NO_OP)
    np.testing.assert_allclose(moving.data.xpos[body], one.motion.pose(2 * CONTROL_HZ, start).position_m, atol=1e-9)
    assert np.linalg.norm(moving.data.xpos[bowl][:2] - ahead[:2]) > 0.03


def test_watching_forces_changes_no_bit_and_measures_weights(still: Scene) -> None:
    entities = entities_of(still)
    on_table = {(name, "main_table"): (entities[name], entities["main_table"]) for name in (BOWL, "plate_1")}
    ends = []
    watch = ForceWatch(still, on_table)
    for watched in (False, True):
        still.reset(0)
        still.substep_watch = watch if watched else None
        for action in restless(10):
            still.step(action)
        ends.append(still.state().sha256())
    assert ends[0] == ends[1]
    still.reset(0)
    assert still.substep_watch is None
    still.substep_watch = resting = ForceWatch(still, on_table)
    for _ in range(5):
        still.step(NO_OP)
    for name in (BOWL, "plate_1"):
        weight_n = GRAVITY_M_S2 * float(still.model.body_subtreemass[still.libero.obj_body_id[name]])
        force = resting.largest_n()[name, "main_table"]
        assert force.shape == (5,)
        assert force[-1] == pytest.approx(weight_n, rel=0.2)


def test_distances_are_those_between_surfaces(still: Scene) -> None:
    still.reset(0)
    at = int(still.model.joint(still.libero.objects_dict["wine_bottle_1"].joints[-1]).qposadr[0])
    spec = read_constraints(f"(:cost (CheckDistance wine_bottle_1 {BOWL} 0.1))", "test").cost
    assert spec is not None
    observer = CostObserver(still, spec)
    settled = still.physics()
    bowl = still.data.xpos[still.libero.obj_body_id[BOWL]][:2].copy()
    for apart_m in (0.30, 0.14, 0.10):
        state = np.array(settled)
        state[1 + at : 1 + at + 2] = bowl + np.array([apart_m, 0.0])
        evidence = observer.evidence(np.stack([state, state]))
        found = float(evidence.distance_m["wine_bottle_1", BOWL][0])
        still.show(state)
        # Another routine of MuJoCo's, which is right for geoms as near as these.
        between = [
            mujoco.mj_geomDistance(still.model, still.data, int(one), int(other), 0.3, None)
            for one in observer.entities["wine_bottle_1"].geoms
            for other in observer.entities[BOWL].geoms
        ]
        assert found == (pytest.approx(min(between), abs=1e-6) if min(between) < 0.1 else np.inf)
        assert evaluate_cost(spec, evidence).total == float(min(between) < 0.1)


def test_the_distance_to_a_region_is_to_its_box(still: Scene) -> None:
    still.reset(0)
    region = "wooden_cabinet_1_top_side"
    spec = read_constraints(f"(:cost (CheckDistance {BOWL} {region} 1))", "test").cost
    assert spec is not None
    at = int(still.model.joint(still.libero.objects_dict[BOWL].joints[-1]).qposadr[0])
    site, half = still.data.site(region), still.model.site(region).size
    above = still.physics()
    above[1 + at : 1 + at + 3] = site.xpos + np.array([0.0, 0.0, half[2] + 0.07])
    inside = np.array(above)
    inside[1 + at : 1 + at + 3] = site.xpos
    distance = CostObserver(still, spec).evidence(np.stack([above, inside])).distance_m[BOWL, region]
    assert distance[0] == pytest.approx(0.07, abs=1e-6)
    assert distance[1] == 0.0
