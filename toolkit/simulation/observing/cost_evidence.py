"""The evidence of cost conditions, taken from the simulator: contacts, poses, distances and forces.

Contacts and poses follow from a state's positions alone, so those of a recorded state are the rollout's own bits.
"""

from __future__ import annotations

import copy
from typing import Any

import mujoco
import numpy as np

from ...arrays import FloatArray, IntArray
from ...errors import InvalidInputError, choices
from ...safety.conditions import GRIPPER, ROBOT, CostSpec, Predicate
from ...safety.evaluation import EntityParts, Evidence
from ..scene import STATE_SPEC, Scene
from .forces import ForceWatch
from .scene_entities import ObservedStates, gripper_parts, observe_states

FLOOR = "floor"
"""Name of the geom that is the floor, and of the floor in conditions."""

MARGINS = 3.0
"""Margin within which near geoms are found, in limits: MuJoCo 3.2.3 finds boxes up to less than half of a margin."""


class CostObserver:
    """Observes in a scene what the conditions of a specification need.

    Args:
        scene: The scene.
        spec: The conditions.

    Attributes:
        spec: The conditions.
        entities: What the names in the conditions stand for.
        force_watch: What measures forces while the scene is stepped; None where no condition needs them.

    Raises:
        InvalidInputError: A condition is about an entity that the scene does not have.
    """

    def __init__(self, scene: Scene, spec: CostSpec) -> None:
        self._scene, self.spec = scene, spec
        self.entities = entities_of(scene)
        for predicate in spec.predicates():
            _check_predicate(predicate, self.entities, scene)
        self._close = _pairs(spec, "CheckDistance")
        forced = _pairs(spec, "CheckForce")
        self.force_watch = (
            ForceWatch(scene, {pair: (self.entities[pair[0]], self.entities[pair[1]]) for pair in forced})
            if forced
            else None
        )
        self._data: Any = None

    def evidence(
        self,
        states: FloatArray,
        observed: ObservedStates | None = None,
    ) -> Evidence:
        """The evidence for the conditions.

        Args:
            states: The simulator's states before each action and after the last, shape (T, n).
            observed: Contacts and poses of the states, where they have been observed already.
        """
        observed = observed or observe_states(self._scene.model, states)
        model = self._scene.model
        rows = np.cumsum([1, model.nq, model.nv])
        return Evidence(
            entities=self.entities,
            geom_count=model.ngeom,
            moment=np.repeat(np.arange(len(observed.contacts)), [len(pairs) for pairs in observed.contacts]),
            geoms=np.concatenate([*observed.contacts, np.zeros((0, 2), np.int32)]),
            body_pos_m=observed.body_pos_m,
            body_quat_wxyz=observed.body_quat_wxyz,
            qvel=states[:, rows[1] : rows[2]],
            distance_m=self._distances(states),
            force_n=self.force_watch.largest_n() if self.force_watch else {},
        )

    def _show(self, state: FloatArray, model: Any) -> Any:
        """MuJoCo's data with the contacts of a state; not the scene's own data, which stays as it is."""
        if self._data is None:
            self._data = mujoco.MjData(self._scene.model)
        mujoco.mj_setState(model, self._data, np.array(state), STATE_SPEC)
        mujoco.mj_kinematics(model, self._data)
        mujoco.mj_comPos(model, self._data)
        mujoco.mj_collision(model, self._data)
        return self._data

    def _distances(self, states: FloatArray) -> dict[tuple[str, str], FloatArray]:
        """Distances of the pairs that ``CheckDistance`` names, in m; infinite beyond the largest limit."""
        if not self._close:
            return {}
        # Contacts are found up to a margin, so with wide margins they give the distances of near geoms. MuJoCo
        # 3.2.3's own mj_geomDistance gives deep overlap for some boxes that are apart.
        wide = copy.copy(self._scene.model)
        wide.geom_margin[:] = wide.body_margin[:] = MARGINS * max(self._close.values())
        found: dict[tuple[str, str], FloatArray] = {pair: np.full(len(states), np.inf) for pair in self._close}
        member = {name: _mask(self.entities[name].geoms, wide.ngeom) for pair in found for name in pair}
        for step, state in enumerate(states):
            data = self._show(state, wide)
            first, second = data.contact.geom.T
            for pair, distance in found.items():
                region = next((name for name in pair if _is_region(self._scene, name)), None)
                if region is not None:
                    distance[step] = self._distance_to_region(data, pair[pair[0] == region], region)
                    continue
                one, other = (member[name] for name in pair)
                near = (one[first] & other[second]) | (one[second] & other[first])
                distance[step] = data.contact.dist[near].min(initial=np.inf)
        return found

    def _distance_to_region(self, data: Any, name: str, region: str) -> float:
        """From the middle of an entity to the region's box, in m, 0 within."""
        scene = self._scene
        site = scene.model.site(region).id
        is_hand = name in (GRIPPER, ROBOT)
        middle = data.site_xpos[scene.arm.grip_site] if is_hand else data.xpos[self.entities[name].main]
        local = data.site_xmat[site].reshape(3, 3).T @ (middle - data.site_xpos[site])
        beyond = np.abs(local) - scene.model.site_size[site]
        return float(np.linalg.norm(np.maximum(beyond, 0.0)))


def entities_of(scene: Scene) -> dict[str, EntityParts]:
    """Everything in a scene that a cost condition may name.

    Its objects and fixtures, its regions by LIBERO's names, ``gripper0``, ``robot0``, and what everything stands on by
    LIBERO's name for it, such as ``main_table``, and ``floor``.
    """
    model, env = scene.model, scene.libero
    root = model.body_rootid
    collides = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
    owner = root[model.geom_bodyid]
    found: dict[str, EntityParts] = {}
    taken = np.zeros(model.ngeom, np.bool_)
    for name, body in env.obj_body_id.items():
        owned = owner == root[body]
        taken |= owned
        joints = getattr(env.objects_dict.get(name), "joints", None)
        found[name] = EntityParts(
            geoms=np.flatnonzero(owned & collides),
            bodies=np.flatnonzero(root == root[body]),
            main=int(body),
            fall_dof=int(model.joint(joints[-1]).dofadr[0]) + 2 if joints else None,
        )
    of_robot = owner == root[scene.hand]
    gripper = gripper_parts(scene) > 0
    nothing = np.zeros(0, np.int64)
    found[ROBOT] = EntityParts(geoms=np.flatnonzero((of_robot | gripper) & collides), bodies=nothing)
    found[GRIPPER] = EntityParts(geoms=np.flatnonzero(gripper & collides), bodies=nothing)
    of_floor = np.array([model.geom(number).name == FLOOR for number in range(model.ngeom)])
    rest = ~taken & ~of_robot & ~gripper & ~of_floor & collides
    found[FLOOR] = EntityParts(geoms=np.flatnonzero(of_floor), bodies=nothing)
    workspace = str(env.workspace_name)
    if workspace != FLOOR:
        found[workspace] = EntityParts(geoms=np.flatnonzero(rest), bodies=nothing)
    for name, region in env.object_sites_dict.items():
        found[name] = _region(scene, name, collides, is_table=region.parent_name is None)
    return found


def _region(scene: Scene, name: str, collides: Any, *, is_table: bool) -> EntityParts:
    """A region's parts: those of the body that carries it, such as a drawer; a region of the table has none."""
    nothing = np.zeros(0, np.int64)
    if is_table:
        return EntityParts(geoms=nothing, bodies=nothing)
    body = int(scene.model.site_bodyid[scene.model.site(name).id])
    geoms = np.flatnonzero((scene.model.geom_bodyid == body) & collides)
    return EntityParts(geoms=geoms, bodies=np.array([body]), main=body)


def _is_region(scene: Scene, name: str) -> bool:
    return name in scene.libero.object_sites_dict


def _check_predicate(predicate: Predicate, entities: dict[str, EntityParts], scene: Scene) -> None:
    """Refuse a predicate that makes no sense in a scene.

    Raises:
        InvalidInputError: It is about entities or parts that the scene does not have, or that it cannot be about.
    """
    where = f"{scene.task.task_id}: {predicate}"
    for name in predicate.entities:
        if name not in entities:
            raise InvalidInputError(f"{where}: the scene has no '{name}': {choices(name, sorted(entities))}")
    if len(predicate.entities) == 1 and entities[predicate.entities[0]].main is None:
        raise InvalidInputError(f"{where}: '{predicate.entities[0]}' is nothing that could be moved")
    for name, numbers in zip(predicate.entities, predicate.parts, strict=False):
        count = len(entities[name].geoms)
        if max(numbers) >= count:
            raise InvalidInputError(f"{where}: '{name}' has {count} parts, numbered from 0")
    if predicate.name == "CheckDistance":
        regions = [_is_region(scene, name) for name in predicate.entities]
        places = [name in (GRIPPER, ROBOT) or entities[name].main is not None for name in predicate.entities]
        if all(regions) or (any(regions) and not all(np.logical_or(regions, places))):
            raise InvalidInputError(f"{where}: of a region the distance to an object, fixture or the gripper is known")
    elif any(not len(entities[name].geoms) for name in predicate.entities):
        raise InvalidInputError(f"{where}: a region of the table has no parts that touch; use CheckDistance")


def _pairs(spec: CostSpec, name: str) -> dict[tuple[str, str], float]:
    """The pairs of entities that predicates of a name are about, each with its largest limit."""
    found: dict[tuple[str, str], float] = {}
    for predicate in spec.predicates():
        if predicate.name == name:
            pair = predicate.entities[0], predicate.entities[1]
            found[pair] = max(found.get(pair, 0.0), predicate.limit or 0.0)
    return found


def _mask(numbers: IntArray, size: int) -> Any:
    mask = np.zeros(size, np.bool_)
    mask[numbers] = True
    return mask
