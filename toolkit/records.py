"""Typed records that the floors pass to each other.

Vocabulary (see the glossary in the README): a *base task* is a LIBERO task; a *case* is one conflicting instruction for
it, its *control* the same instruction with the conflict repaired; an *instance* is a case, a control or a base task's
own instruction under one prompt condition; a *rollout* is one episode of a policy on an instance; a *pair* is a
conflict or control rollout with its reference rollout.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

PROTOCOL_VERSION = "2.0"
"""Version of the evaluation protocol; any change of a measure's definition raises it."""

CONTROL_HZ = 20
"""Control steps per second, LIBERO's and so every rollout's."""

SETTLE_STEPS = 10
"""No-op actions executed after a reset, before the first policy action; not counted as executed."""

HORIZONS = {"libero_spatial": 220, "libero_object": 280, "libero_goal": 300, "libero_10": 520}
"""Most executed actions of a rollout of a base task's own instruction, by suite."""

SUITES = tuple(HORIZONS)
"""The four suites of ten tasks each that the benchmark is built on."""

TOKENIZED = "Tokenized Autoregressive VLAs"
CONTINUOUS = "Continuous-Action VLAs"
WORLD_MODEL = "World Model-based VLAs"
GENERALIST = "Generalist Robot Foundation Models"

POLICY_FAMILIES = (TOKENIZED, CONTINUOUS, WORLD_MODEL, GENERALIST)
"""Architecture families, in the paper's words and order (section IV-A)."""


class Family(StrEnum):
    """Conflict family: where the invalid premise comes from."""

    INSTRUCTION = "instruction"
    GROUNDING = "grounding"
    SPATIAL = "spatial"
    PHYSICAL = "physical"


class Level(StrEnum):
    """Structural level: one step or several, one violated premise or several."""

    L1 = "L1"
    L2 = "L2"
    L3 = "L3"
    L4 = "L4"


class Prompt(StrEnum):
    """Built-in prompt condition: the instruction alone (P0), after a premise check (P1), or after as many idle words.

    Others are a user's own, by their names; see ``toolkit.prompts``.
    """

    P0 = "P0"
    P1 = "P1"
    PLACEBO = "placebo"


class LanguageProbe(StrEnum):
    """Language probe: how many words of an instruction are replaced by close ones, without changing its meaning."""

    W0 = "W0"
    W1 = "W1"
    W2 = "W2"
    W3 = "W3"
    W4 = "W4"


class VisualProbe(StrEnum):
    """Visual probe: what is changed in the pictures that a policy sees, each level on top of the one before."""

    V0 = "V0"
    V1 = "V1"
    V2 = "V2"
    V3 = "V3"
    V4 = "V4"


class VisualNoise(StrEnum):
    """Kind of the noise that V4 adds to pictures."""

    GAUSSIAN = "gaussian"
    SALT_PEPPER = "salt_pepper"


class Arm(StrEnum):
    """Whose instruction a rollout has: the base task's own, a case's, or that of a case's control."""

    REFERENCE = "reference"
    CONFLICT = "conflict"
    CONTROL = "control"

    @property
    def premises_hold(self) -> bool:
        """Whether what the instruction takes for granted is so in the scene."""
        return self is not Arm.CONFLICT


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseTask:
    """One LIBERO task.

    Attributes:
        suite: LIBERO suite, such as ``libero_goal``.
        index: The task's number within its suite, from 0.
        name: LIBERO's name, such as ``put_the_bowl_on_the_plate``.
        instruction: The benchmark's own ``task.language``, what checkpoints were trained on.
        goal: The BDDL goal, a conjunction of predicates such as ``("on", "akita_black_bowl_1", "plate_1")``.
        bddl_file: File name of the task's BDDL file within its suite.
        horizon: Most executed actions of a rollout.
    """

    suite: str
    index: int
    name: str
    instruction: str
    goal: tuple[tuple[str, ...], ...]
    bddl_file: str
    horizon: int

    @property
    def task_id(self) -> str:
        """Readable and unique, ``suite/name``."""
        return f"{self.suite}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """One violated premise, with the evidence that it is violated.

    Attributes:
        family: The family the violated premise belongs to.
        premise: What the instruction presupposes, such as ``exists(mug)`` or ``on(bowl, stove)``.
        expected: What would have to hold, in words.
        observed: What holds instead, in words and numbers.
        margin: How far the observation is from satisfying the premise, in the unit of ``observed`` (metres for
            distances and sizes); None where the violation is not a matter of degree.
    """

    family: Family
    premise: str
    expected: str
    observed: str
    margin: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """What a policy is given: an instruction under one prompt condition, on one base task.

    Attributes:
        instance_id: Unique, such as ``libero_goal/put_the_bowl_on_the_plate/grounding/L1/03-1f2e3d4c/P0``.
        case_id: The case, or of a control the case that it repairs, without the prompt condition; None for a reference.
        pair_id: ``instance_id`` of the reference instance that it is compared with; a reference's own id.
        arm: Reference, conflict or control.
        suite: LIBERO suite.
        base_task: The base task's name.
        base_task_index: Its number within the suite.
        base_instruction: The base task's own instruction.
        instruction: The instruction of this instance, without the prompt condition's words.
        prompt: Name of the prompt condition, one of ``Prompt`` or a user's own.
        prompt_text: The exact string for the policy: the instruction in the condition's words.
        prompt_version: Version of the condition's words.
        family: Conflict family, of a control that of its case; None for a reference.
        level: Structural level, of a control that of its case; None for a reference.
        operator: Name of the operator that made the case; None for a reference.
        plan: The instruction's plan as JSON (see ``toolkit.language.plan``).
        factors: The violated premises with evidence; none for a reference or a control.
        targets: What the reference goal requires the robot to manipulate, by the simulator's names.
        horizon: Most executed actions of a rollout; grows with the steps of the instruction's plan.
        tasks_version: Version of the task release that it comes from.
        language_probe: Which wording of the instruction it is; W0 is the instruction as released.
    """

    instance_id: str
    case_id: str | None
    pair_id: str
    arm: Arm
    suite: str
    base_task: str
    base_task_index: int
    base_instruction: str
    instruction: str
    prompt: str
    prompt_text: str
    prompt_version: str
    family: Family | None
    level: Level | None
    operator: str | None
    plan: str
    factors: tuple[Factor, ...]
    targets: tuple[str, ...]
    horizon: int
    tasks_version: str
    language_probe: LanguageProbe = LanguageProbe.W0
