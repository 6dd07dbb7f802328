"""What a goal requires the robot to manipulate, for LIBERO's own tasks and scenes."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from conflictvla.builders.rollouts.schema import TARGET_SLOTS
from conflictvla.toolkit.errors import InvalidInputError
from conflictvla.toolkit.libero.base_tasks import base_task, base_tasks
from conflictvla.toolkit.records import BaseTask
from conflictvla.toolkit.simulation.observing.targets import (
    goal_targets,
    moving_joint,
    opening_direction,
    target_positions,
)
from conflictvla.toolkit.simulation.scene import Scene


def targets_of(suite: str, name: str) -> tuple[str, ...]:
    return goal_targets(base_task(suite, name))


@pytest.fixture(scope="module")
def kitchen() -> Scene:
    scene = Scene(base_task("libero_goal", "open_the_top_drawer_and_put_the_bowl_inside"))
    scene.reset(0)
    return scene


def set_joint(scene: Scene, name: str, value: float) -> None:
    scene.data.joint(name).qpos[0] = value
    mujoco.mj_forward(scene.model, scene.data)


@pytest.mark.parametrize("task", base_tasks(), ids=lambda task: task.task_id)
def test_every_base_task_has_between_one_and_four_distinct_targets(task: BaseTask) -> None:
    targets = goal_targets(task)
    assert 1 <= len(targets) <= TARGET_SLOTS
    assert len(set(targets)) == len(targets)


def test_object_that_is_put_somewhere_is_the_target_and_the_place_is_not() -> None:
    assert targets_of("libero_goal", "put_the_cream_cheese_in_the_bowl") == ("cream_cheese_1",)


def test_drawer_that_starts_closed_adds_its_handle() -> None:
    assert targets_of("libero_goal", "open_the_top_drawer_and_put_the_bowl_inside") == (
        "wooden_cabinet_1_top_handle",
        "akita_black_bowl_1",
    )


def test_drawer_that_starts_open_is_a_target_only_where_it_must_be_closed() -> None:
    name = "KITCHEN_SCENE4_put_the_black_bowl_in_the_bottom_drawer_of_the_cabinet_and_close_it"
    task = base_task("libero_10", name)
    assert goal_targets(task) == ("white_cabinet_1_bottom_handle", "akita_black_bowl_1")
    with_drawer_left_open = BaseTask(
        suite=task.suite,
        index=task.index,
        name=task.name,
        instruction=task.instruction,
        goal=tuple(predicate for predicate in task.goal if predicate[0] == "in"),
        bddl_file=task.bddl_file,
        horizon=task.horizon,
    )
    assert goal_targets(with_drawer_left_open) == ("akita_black_bowl_1",)


def test_part_of_the_goal_that_holds_from_the_start_adds_no_target() -> None:
    assert targets_of("libero_10", "KITCHEN_SCENE8_put_both_moka_pots_on_the_stove") == ("moka_pot_1", "moka_pot_2")


def test_door_and_knob_are_named_after_their_fixture() -> None:
    microwave = "KITCHEN_SCENE6_put_the_yellow_and_white_mug_in_the_microwave_and_close_it"
    assert targets_of("libero_10", microwave) == ("white_yellow_mug_1", "microwave_1_handle")
    assert targets_of("libero_goal", "turn_on_the_stove") == ("flat_stove_1_knob",)


def test_objects_position_is_that_of_its_body(kitchen: Scene) -> None:
    expected = kitchen.data.body("akita_black_bowl_1_main").xpos
    np.testing.assert_array_equal(target_positions(kitchen, ["akita_black_bowl_1"])[0], expected)


@pytest.mark.parametrize("level", ["top", "middle", "bottom"])
def test_handle_stands_before_its_drawer_and_moves_with_it(kitchen: Scene, level: str) -> None:
    kitchen.reset(0)
    handle = f"wooden_cabinet_1_{level}_handle"
    shut = target_positions(kitchen, [handle])[0]
    inside = kitchen.data.site(f"wooden_cabinet_1_{level}_region").xpos.copy()
    outward = opening_direction(kitchen, moving_joint(kitchen, handle))
    assert (shut - inside) @ outward == pytest.approx(0.113, abs=0.01)
    set_joint(kitchen, f"wooden_cabinet_1_{level}_level", -0.10)
    np.testing.assert_allclose(target_positions(kitchen, [handle])[0], shut + 0.10 * outward, atol=1e-9)


def test_knob_turns_about_its_axis(kitchen: Scene) -> None:
    kitchen.reset(0)
    off = target_positions(kitchen, ["flat_stove_1_knob"])[0]
    axis = kitchen.data.xanchor[moving_joint(kitchen, "flat_stove_1_knob")].copy()
    set_joint(kitchen, "flat_stove_1_button", np.pi / 2)
    on = target_positions(kitchen, ["flat_stove_1_knob"])[0]
    assert on[2] == pytest.approx(off[2], abs=1e-6)
    expected = axis[:2] + np.array([-(off - axis)[1], (off - axis)[0]])
    np.testing.assert_allclose(on[:2], expected, atol=1e-6)


def test_positions_have_one_row_a_target_in_the_order_asked(kitchen: Scene) -> None:
    kitchen.reset(0)
    names = ["plate_1", "flat_stove_1_knob", "wine_bottle_1"]
    together = target_positions(kitchen, names)
    assert together.shape == (3, 3)
    for row, name in zip(together, names, strict=True):
        np.testing.assert_array_equal(row, target_positions(kitchen, [name])[0])
    assert target_positions(kitchen, []).shape == (0, 3)


@pytest.mark.parametrize("name", ["teapot_1", "plate_1_handle", "wooden_cabinet_1_handle", "wooden_cabinet_1_knob"])
def test_target_that_is_not_in_the_scene_is_refused_by_name(kitchen: Scene, name: str) -> None:
    with pytest.raises(InvalidInputError, match=name):
        target_positions(kitchen, [name])


def test_goal_with_an_unknown_predicate_is_refused() -> None:
    task = base_task("libero_goal", "turn_on_the_stove")
    unknown = BaseTask(
        suite=task.suite,
        index=task.index,
        name=task.name,
        instruction=task.instruction,
        goal=(("upsidedown", "plate_1"),),
        bddl_file=task.bddl_file,
        horizon=task.horizon,
    )
    with pytest.raises(InvalidInputError, match="upsidedown"):
        goal_targets(unknown)


@pytest.mark.slow
@pytest.mark.parametrize("task", base_tasks(), ids=lambda task: task.task_id)
def test_targets_of_every_base_task_are_within_the_robots_reach(task: BaseTask) -> None:
    scene = Scene(task)
    scene.reset(0)
    positions = target_positions(scene, goal_targets(task))
    base = scene.data.body("robot0_base").xpos
    assert np.all(np.linalg.norm(positions[:, :2] - base[:2], axis=1) < 0.9)
