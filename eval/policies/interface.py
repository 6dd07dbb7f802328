"""The interface between the rollout runner and a policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ...toolkit.arrays import FloatArray, Image
from ...toolkit.errors import InvalidInputError
from ...toolkit.records import Instance

if TYPE_CHECKING:
    from ...toolkit.simulation.scene import Scene


ACTION_WIDTH = 7
"""Components of an action: translation, axis-angle rotation, gripper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyInfo:
    """Where a policy comes from; goes into every record.

    Attributes:
        name: Short name, such as ``persist``.
        revision: What exactly ran: a commit, a checkpoint's revision, or a version.
        settings: Whatever else changes its behaviour, by name.
        family: Its architecture family, by which tables group policies, such as ``OpenVLA``; None where it has none.
    """

    name: str
    revision: str
    settings: dict[str, str | int | float | bool] = field(default_factory=dict)
    family: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """What a policy receives when a rollout begins.

    Attributes:
        instruction: The exact string handed to the policy, prompt condition included.
        init_state: LIBERO's number of the initial state.
        seed: Seed for whatever the policy draws at random.
        instance: The instance, for scripted agents and calibration; a policy under test has no business with it.
        scene: The simulator, for the same use.
    """

    instruction: str
    init_state: int
    seed: int
    instance: Instance
    scene: Scene


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a policy receives before it acts.

    Attributes:
        step: Executed actions so far, from 0.
        eef_pos_m: Gripper site in the world, in m, shape (3,).
        eef_quat_wxyz: Hand orientation, unit quaternion, shape (4,).
        joint_pos_rad: Arm joint angles, shape (7,).
        gripper_pos_m: Finger joint positions, shape (2,).
        state: LIBERO's 8-D state: position, axis-angle, fingers.
        camera: Renders a view of the present scene; nothing is rendered that is not asked for.
    """

    step: int
    eef_pos_m: FloatArray
    eef_quat_wxyz: FloatArray
    joint_pos_rad: FloatArray
    gripper_pos_m: FloatArray
    state: FloatArray
    camera: Callable[[str, int], Image]

    def image(self, camera: str = "agentview", size: int = 256) -> Image:
        """A view of the scene as it is now, upright, shape (size, size, 3).

        Args:
            camera: ``agentview`` or ``robot0_eye_in_hand``.
            size: Width and height in pixels.

        Raises:
            NotFoundError: There is no such camera.
            InvalidInputError: The scene cannot be drawn in that size, or no GL library works here.
        """
        return self.camera(camera, size)


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a policy answers instead of actions where it will not act, or not before it knows more; the rollout ends.

    Attributes:
        text: What it says, in one line of at most 2,000 characters when it is recorded.
        kind: ``refusal``, or ``question`` where it asks back.
    """

    text: str
    kind: str = "refusal"


@runtime_checkable
class Policy(Protocol):
    """A policy: it begins an episode when ``reset`` is called, then gives chunks of actions, or refuses.

    Attributes:
        info: Name, revision and settings.
    """

    info: PolicyInfo

    def reset(self, episode: Episode) -> None:
        """Begin an episode; nothing may carry over from the one before."""

    def act(self, observation: Observation) -> FloatArray | Refusal:
        """Next actions, or a refusal, which ends the rollout.

        Actions have shape (n, 7) with n >= 1, in [-1, 1]; all n are executed before the next call.
        """


def check_info(policy: Policy, what: str) -> None:
    """Make sure that a policy's ``info`` can be recorded.

    Args:
        policy: The policy.
        what: What messages begin with.

    Raises:
        InvalidInputError: It is no ``PolicyInfo``, or holds values of another kind than that says.
    """
    info: Any = policy.info
    if not isinstance(info, PolicyInfo):
        raise InvalidInputError(f"{what}: info is {type(info).__name__}; make it PolicyInfo(name=..., revision=...)")
    for name in ("name", "revision"):
        if not isinstance(getattr(info, name), str) or not getattr(info, name):
            raise InvalidInputError(f"{what}: info.{name} is {getattr(info, name)!r:.60}; it must be text")
    if not (info.family is None or isinstance(info.family, str)):
        raise InvalidInputError(f"{what}: info.family is {info.family!r:.60}; it must be text or None")
    if not isinstance(info.settings, dict):
        raise InvalidInputError(f"{what}: info.settings is {type(info.settings).__name__}; it must be a dict")
    for key, value in info.settings.items():
        if not isinstance(key, str) or not isinstance(value, str | int | float):
            raise InvalidInputError(
                f"{what}: info.settings holds {key!r:.60}: {value!r:.60}; names must be text, values text or numbers"
            )
