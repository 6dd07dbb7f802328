"""From a base task's goal to the skills that bring it about, planned from simulator names, not from language."""

from __future__ import annotations

import numpy as np

from ....toolkit.errors import InvalidInputError
from ....toolkit.records import BaseTask
from ....toolkit.simulation.observing.targets import KNOB, goal_targets, handle_name, target_positions
from ....toolkit.simulation.scene import Scene
from .fixtures import press, pull, turn, way_out
from .grasping import ACROSS, DOWN, choose_grasp
from .motion import OPEN, HandPose, Motion, go, stay
from .places import chamber, fit, is_dish_on_table, is_drawer, path_past_others, resting_place, standing_place
from .skills import insert, pick, place, tow, underside

LEAN_RAD = np.radians(30.0)
"""How far the hand leans outward to take objects from under an open drawer."""

FIXTURE_ABOVE_M = 0.3
"""Height above a fixture's origin at which a hand that was sent there waits."""


def check_goal(task: BaseTask) -> None:
    """Make sure that there is a skill for every part of a task's goal.

    Raises:
        InvalidInputError: There is none for some part.
    """
    for predicate in task.goal:
        if predicate[0] not in ("on", "in", "open", "close", "turnon"):
            raise InvalidInputError(f"the scripted agents have no skill for {predicate} in {task.task_id}")


def pursue(scene: Scene, *, empty: bool = False) -> Motion:
    """Work on the base task's goal, part by part, again and again until it holds; then hold still.

    Args:
        scene: The scene.
        empty: Go the same ways with an empty hand, forever.
    """
    # What is to be shut is shut last, whatever the order in which LIBERO states the goal.
    parts = sorted(scene.task.goal, key=lambda predicate: predicate[0] == "close")
    while True:
        idle = True
        for predicate in parts:
            if _is_next(scene, predicate, empty=empty):
                idle = False
                yield from _achieve(scene, predicate, empty=empty)
        if idle:
            yield from stay(scene, OPEN, 1)


def handle_another(scene: Scene) -> Motion:
    """Take up the object that is furthest from all targets and put it down where it stood, again and again.

    Where everything that can be taken is a target, the hand goes to the fixture that is furthest from them, and waits
    above it.
    """
    targets = target_positions(scene, goal_targets(scene.task))

    def apart_m(name: str) -> float:
        return float(np.linalg.norm(targets - target_positions(scene, [name])[0], axis=1).min())

    spared = {name for part in scene.task.goal for name in part[1:]}
    sites = scene.libero.object_sites_dict
    spared |= {sites[name].parent_name for name in spared & set(sites)}
    others = [name for name in scene.libero.objects_dict if name not in spared]
    if not others:
        yield from _wait_above(scene, max(set(scene.libero.fixtures_dict) & set(scene.libero.obj_body_id), key=apart_m))
    other = max(others, key=apart_m)
    stood = underside(scene, other)
    while True:
        grasp = choose_grasp(scene, other)
        yield from pick(scene, other, grasp, empty=False)
        yield from place(scene, other, grasp, lambda: stood, empty=False)


def _wait_above(scene: Scene, fixture: str) -> Motion:
    above = target_positions(scene, [fixture])[0] + [0.0, 0.0, FIXTURE_ABOVE_M]
    yield from go(scene, HandPose(position_m=above, approach=DOWN, fingers=ACROSS), OPEN)
    while True:
        yield from stay(scene, OPEN)


def _is_next(scene: Scene, predicate: tuple[str, ...], *, empty: bool) -> bool:
    """Whether a part of the goal is to be worked on: it does not hold, and nothing is shut before all else holds.

    An empty hand goes on to what is to be shut all the same, since for it nothing else ever holds.
    """
    if scene.holds(predicate):
        return False
    others = [other for other in scene.task.goal if other[0] != "close"]
    return empty or predicate[0] != "close" or all(scene.holds(other) for other in others)


def _achieve(scene: Scene, predicate: tuple[str, ...], *, empty: bool) -> Motion:
    relation, subject = predicate[0], predicate[1]
    if relation == "turnon":
        yield from turn(scene, subject + KNOB, empty=empty)
    elif relation == "open":
        yield from pull(scene, handle_name(subject), empty=empty)
    elif relation == "close":
        yield from press(scene, handle_name(subject), empty=empty)
    else:
        yield from _bring(scene, relation, subject, predicate[2], empty=empty)


def _bring(scene: Scene, relation: str, subject: str, place_name: str, *, empty: bool) -> Motion:
    """Bring an object onto or into a place."""
    if is_dish_on_table(scene, subject, place_name):
        yield from tow(scene, subject, path_past_others(scene, subject, place_name), empty=empty)
        return
    fixture = chamber(scene, relation, place_name)
    if fixture is not None:
        outward = way_out(scene, handle_name(fixture))
        yield from insert(scene, subject, outward, standing_place(scene, subject, place_name, outward), empty=empty)
        return
    into_drawer = relation == "in" and is_drawer(scene, place_name)
    if into_drawer and not scene.holds(("open", place_name)):
        yield from pull(scene, handle_name(place_name), empty=empty)
    rest = resting_place(scene, relation, subject, place_name)
    to_m = rest() - underside(scene, subject)
    grasp = choose_grasp(scene, subject, to_m=to_m, lean_rad=float(LEAN_RAD) if into_drawer else 0.0)
    yield from pick(scene, subject, grasp, empty=empty)
    fingers, lowering_m = fit(scene, subject, grasp, relation, place_name)
    yield from place(scene, subject, grasp, rest, empty=empty, fingers=fingers, lowering_m=lowering_m)
