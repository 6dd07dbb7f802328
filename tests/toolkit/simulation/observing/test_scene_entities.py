"""Names of what stands in a scene, and which of it the goal is about."""

from __future__ import annotations

import numpy as np

from conflictvla.toolkit.libero.base_tasks import base_task
from conflictvla.toolkit.simulation.observing.scene_entities import SceneEntities
from conflictvla.toolkit.simulation.scene import Scene


def test_a_drawers_goal_is_about_its_cabinet_alone() -> None:
    scene = Scene(base_task("libero_goal", "open_the_middle_drawer_of_the_cabinet"))
    scene.reset(0)
    entities = SceneEntities(scene)
    assert entities.objects == ("akita_black_bowl_1", "cream_cheese_1", "wine_bottle_1", "plate_1")
    assert entities.fixtures == ("wooden_cabinet_1", "flat_stove_1", "wine_rack_1")
    assert entities.goal == ("wooden_cabinet_1",)
    # Objects lie on the table and on each other, and an open gripper in the air touches none of them.
    assert scene.data.ncon > 0
    assert not entities.gripper_contact([scene.data.contact.geom]).any()


def test_contacts_by_hand() -> None:
    scene = Scene(base_task("libero_goal", "put_the_bowl_on_the_plate"))
    entities = SceneEntities(scene)
    assert entities.goal == ("akita_black_bowl_1", "plate_1")
    left, right, hand = (
        scene.model.geom(f"gripper0_{name}").id
        for name in ("finger1_pad_collision", "finger2_collision", "hand_collision")
    )
    bowl, plate = (scene.model.body_geomadr[body] for body in entities.bodies[[0, 3]])
    drawer = next(
        geom
        for geom in range(scene.model.ngeom)
        if scene.model.body(scene.model.geom_bodyid[geom]).name == "wooden_cabinet_1_cabinet_top"
    )
    moments = [
        np.array(pairs, np.int32).reshape(-1, 2)
        for pairs in (
            [],
            [[left, bowl]],
            [[bowl, left], [right, bowl]],
            [[hand, plate], [left, plate], [bowl, plate], [left, right]],
            [[drawer, right]],
        )
    ]
    np.testing.assert_array_equal(
        entities.gripper_contact(moments),
        [
            [0, 0, 0, 0, 0, 0, 0],
            [1, 0, 0, 0, 0, 0, 0],
            [2, 0, 0, 0, 0, 0, 0],
            [0, 0, 0, 1, 0, 0, 0],
            [0, 0, 0, 0, 1, 0, 0],
        ],
    )
