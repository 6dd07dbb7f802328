"""When the states of a rollout first show the goals of its steps.

Everything follows from positions and contacts that are recorded anyway, after the rollout: nothing is asked of the
simulator while it runs, so that no bit of the trajectory depends on it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np

from ..arrays import BoolArray, FloatArray
from ..facts import SceneFacts
from ..language.plan import Relation
from ..premises.spatial import TRUE, judge
from ..simulation.observing.scene_entities import ObservedStates
from ..simulation.observing.scene_parts import ScenePart
from ..simulation.scene import Scene
from .goals import GoalPredicate, StepGoal
from .poses import PartBox, site_poses, touching

NEVER = -1
"""Recorded of a goal that no state shows."""

CENTRED_M = 0.03
"""LIBERO's on: the middles of two objects are less than this apart, seen from above."""

INSIDE_DEPTH_M = 0.01
"""What is inside something without a region of LIBERO's reaches at least this far below its upper edge."""

JUDGED = {
    GoalPredicate.NEXT_TO: Relation.NEXT_TO,
    GoalPredicate.IN_FRONT_OF: Relation.IN_FRONT_OF,
    GoalPredicate.BEHIND: Relation.BEHIND,
    GoalPredicate.LEFT_OF: Relation.LEFT_OF,
    GoalPredicate.RIGHT_OF: Relation.RIGHT_OF,
    GoalPredicate.AT_CENTER: Relation.AT_CENTER,
}
"""Predicates that hold where the premise checker would call a claim of the relation true, and something but the robot
bears the subject: what is carried past a place is not there yet."""


class GoalObserver:
    """Finds in the states of rollouts in one scene when step goals first hold.

    Args:
        scene: The scene; it is only read, and only its model.
        parts: Its parts, from ``scene_parts``.
        facts: Its facts in some state.
        boxes: Boxes of its parts as far as known, which are added to.
    """

    def __init__(self, scene: Scene, parts: Sequence[ScenePart], facts: SceneFacts, boxes: dict[str, PartBox]) -> None:
        self._scene, self._model, self._facts = scene, scene.model, facts
        self._parts: Mapping[str, ScenePart] = {part.entity.name: part for part in parts}
        root = self._model.body_rootid
        self._robot: BoolArray = (root == root[scene.hand])[self._model.geom_bodyid]
        self._boxes = boxes

    def first_met(
        self, goals: Sequence[StepGoal | None], states: FloatArray, observed: ObservedStates
    ) -> tuple[int, ...]:
        """After how many executed actions each goal first holds, ``NEVER`` where it does not or there is none.

        Args:
            goals: Step goals.
            states: The simulator's states before each action and after the last, shape (T, n).
            observed: Contacts and poses in the same states.
        """
        return tuple(NEVER if goal is None else _first(self.holds(goal, states, observed)) for goal in goals)

    def holds(self, goal: StepGoal, states: FloatArray, observed: ObservedStates) -> BoolArray:
        """Whether a goal holds in each state, shape (T,)."""
        return np.asarray(
            np.sum([self._holds_for(subject, goal, states, observed) for subject in goal.subjects], axis=0)
            >= goal.count
        )

    def _holds_for(self, subject: str, goal: StepGoal, states: FloatArray, observed: ObservedStates) -> BoolArray:
        if not goal.places:
            return self._in_state(goal.predicate, subject, states)
        found = np.zeros(len(states), np.bool_)
        if not self._parts[subject].entity.movable:
            return found  # a fixture that stands there was not brought there
        for place in goal.places:
            if place != subject:
                found |= self._at(goal.predicate, subject, place, observed)
        return found

    def _in_state(self, predicate: GoalPredicate, subject: str, states: FloatArray) -> BoolArray:
        """LIBERO's open, close, turnon and turnoff, from the joints."""
        libero, model = self._scene.libero, self._model
        site = libero.object_sites_dict.get(subject)
        # LIBERO's own object lights its flame when it is asked: a copy is asked.
        asset = copy.copy(libero.get_object(site.parent_name if site is not None else subject))
        asset.object_properties = copy.deepcopy(asset.object_properties)
        ask, combine = {
            GoalPredicate.OPEN: ("is_open", np.any),
            GoalPredicate.CLOSE: ("is_close", np.all),
            GoalPredicate.TURN_ON: ("turn_on", np.any),
            GoalPredicate.TURN_OFF: ("turn_off", np.all),
        }[predicate]
        joints = [model.joint(name) for name in (site if site is not None else asset).joints]
        moving = [joint for joint in joints if joint.type[0] != mujoco.mjtJoint.mjJNT_FREE]
        positions = [states[:, 1 + int(joint.qposadr[0])] for joint in moving]
        asked = getattr(asset, ask)
        return np.asarray(combine([[bool(asked(value)) for value in values] for values in positions], axis=0))

    def _at(self, predicate: GoalPredicate, subject: str, place: str, observed: ObservedStates) -> BoolArray:
        if predicate in (GoalPredicate.ON, GoalPredicate.IN):
            if place in self._scene.libero.object_sites_dict:
                return self._at_region(predicate, subject, place, observed)
            return self._on_object(subject, place, observed)
        if predicate in JUDGED:
            return self._judged(JUDGED[predicate], subject, place, observed)
        low, high = (self._box(place).corners_m(observed)[:, end] for end in (0, 1))
        box = self._box(subject).corners_m(observed)
        middle = box.mean(axis=1)
        over = np.all((low[:, :2] <= middle[:, :2]) & (middle[:, :2] <= high[:, :2]), axis=1)
        if predicate is GoalPredicate.UNDER:
            return np.asarray(over & (middle[:, 2] <= low[:, 2]))
        touch = touching(observed, self._geoms(subject), self._geoms(place))
        if predicate is GoalPredicate.INSIDE:
            return np.asarray(touch & over & (box[:, 0, 2] <= high[:, 2] - INSIDE_DEPTH_M))
        return np.asarray(touch & over & (middle[:, 2] > 0.5 * (low + high)[:, 2]))

    def _at_region(self, predicate: GoalPredicate, subject: str, region: str, observed: ObservedStates) -> BoolArray:
        """LIBERO's on and in of a region: the middle of the object's body is over it, or in it."""
        libero = self._scene.libero
        site = libero.object_sites_dict[region]
        position, rotation = site_poses(self._model, region, observed)
        body = observed.body_pos_m[:, self._body(subject)]
        inside = site.in_box if predicate is GoalPredicate.IN else site.under
        held = np.array([bool(inside(*poses)) for poses in zip(position, rotation, body, strict=True)], np.bool_)
        if predicate is GoalPredicate.ON and libero.get_object(site.parent_name) is not None:
            held &= touching(observed, self._geoms(subject), self._geoms(site.parent_name, with_parts=True))
        return held

    def _on_object(self, subject: str, place: str, observed: ObservedStates) -> BoolArray:
        """LIBERO's on of an object: in contact, no lower, and their middles less than 3 cm apart from above."""
        gap = observed.body_pos_m[:, self._body(subject)] - observed.body_pos_m[:, self._body(place)]
        touch = touching(observed, self._geoms(subject), self._geoms(place, with_parts=True))
        return np.asarray((gap[:, 2] >= 0.0) & touch & (np.linalg.norm(gap[:, :2], axis=1) < CENTRED_M))

    def _judged(self, relation: Relation, subject: str, place: str, observed: ObservedStates) -> BoolArray:
        index, other = self._facts.index(subject), self._facts.index(place)
        boxes = np.repeat(self._facts.box_m[:1], len(observed.contacts), axis=0)
        boxes[:, index], boxes[:, other] = (self._box(name).corners_m(observed) for name in (subject, place))
        true = judge(relation, index, (other,), replace(self._facts, box_m=boxes)).truth == TRUE
        own = self._geoms(subject)
        borne = touching(observed, own, ~own & ~self._robot)
        if relation is Relation.NEXT_TO:  # beside it, and not on it
            middle = boxes[:, index].mean(axis=1)[:, :2]
            true &= np.any((middle < boxes[:, other, 0, :2]) | (middle > boxes[:, other, 1, :2]), axis=1)
        return np.asarray(true & borne)

    def _body(self, name: str) -> int:
        """Number of an entity's own body, on which all others of it hang."""
        bodies, part = self._scene.libero.obj_body_id, self._parts[name]
        return int(bodies[name] if name in bodies else min(part.bodies, default=0))

    def _box(self, name: str) -> PartBox:
        if name not in self._boxes:
            self._boxes[name] = PartBox(self._scene, self._parts[name])
        return self._boxes[name]

    def _geoms(self, name: str, *, with_parts: bool = False) -> BoolArray:
        """Which geoms of the model are an entity's; a cabinet's drawers are its parts, shape (ngeom,)."""
        bodies = self._parts[name].bodies
        if not with_parts:
            of_parts = [part.bodies for part in self._parts.values() if part.entity.part_of == name]
            bodies = bodies.difference(*of_parts)
        member: Any = np.isin(self._model.geom_bodyid, list(bodies))
        return np.asarray(member, np.bool_)


def _first(held: BoolArray) -> int:
    return int(np.argmax(held)) if held.any() else NEVER
