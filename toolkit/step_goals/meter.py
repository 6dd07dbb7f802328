"""The step goals of a rollout: grounded where it begins, looked for in its states when it has ended."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from ..arrays import FloatArray
from ..errors import InvalidInputError, NotFoundError
from ..facts import SceneFacts
from ..language.parsing.libero import parse_base_instruction
from ..language.plan_json import plan_from_json
from ..language.vocabulary import Vocabulary, load_vocabulary
from ..records import BaseTask
from ..simulation.observing.scene_entities import ObservedStates
from ..simulation.observing.scene_facts import observe_facts
from ..simulation.observing.scene_parts import scene_parts
from ..simulation.scene import Scene
from .goals import GoalPredicate, StepGoal
from .grounding import GroundedScene, Place, base_places, step_goals
from .observing import GoalObserver
from .poses import PartBox


@dataclass(frozen=True, slots=True, kw_only=True)
class MetGoals:
    """The step goals of one rollout.

    Attributes:
        goals: The goal of each step of the instruction's plan as text, empty where a step has none in the scene.
        met: After how many executed actions each first held: 0 at the start, -1 for never.
    """

    goals: tuple[str, ...]
    met: tuple[int, ...]


class StepGoalMeter:
    """Measures when a rollout, which a scene is about to execute, meets the goals of its instruction's steps.

    Nothing is done while it runs: all follows from what the recorder stores.

    Args:
        scene: The scene, already reset.
        init_state: The initial state that it was reset to.
        plan: The instruction's plan as JSON.
    """

    def __init__(self, scene: Scene, init_state: int, plan: str) -> None:
        self._observer: GoalObserver | None = None
        self._goals: tuple[StepGoal | None, ...] = ()
        try:
            read = plan_from_json(plan)
            known = _known(scene)
            grounded = known.grounded(scene, init_state)
            self._goals = step_goals(read, grounded)
            self._observer = GoalObserver(scene, known.parts, grounded.facts, known.boxes)
        except (InvalidInputError, NotFoundError):
            return  # a suite of one's own, with words that grammar or vocabulary do not have

    def finish(self, states: FloatArray, observed: ObservedStates) -> MetGoals | None:
        """The goals and when they were met; None where the plan or the scene's words cannot be made sense of.

        Args:
            states: The simulator's states before each action and after the last, shape (H + 1, n).
            observed: Contacts and poses in the same states.
        """
        if self._observer is None:
            return None
        return MetGoals(
            goals=tuple("" if goal is None else str(goal) for goal in self._goals),
            met=self._observer.first_met(self._goals, states, observed),
        )


class _KnownScene:
    """What was found of a scene, which is the same in every rollout; it does not hold the scene itself."""

    def __init__(self, scene: Scene) -> None:
        self.parts = tuple(scene_parts(scene, hollows=False))
        self.boxes: dict[str, PartBox] = {}
        self._grounded: dict[int, GroundedScene] = {}

    def grounded(self, scene: Scene, init_state: int) -> GroundedScene:
        """What words mean in an initial state, in which the scene is now: after a reset always the same."""
        if init_state not in self._grounded:
            facts = observe_facts(scene, init_state, self.parts)
            regions = {part.entity.name: part.region for part in self.parts if part.region is not None}
            words = load_vocabulary()
            self._grounded[init_state] = GroundedScene(
                facts=facts, words=words, regions=regions, places=_places(scene.task, facts, words)
            )
        return self._grounded[init_state]


_KNOWN: WeakKeyDictionary[Scene, _KnownScene] = WeakKeyDictionary()


def _known(scene: Scene) -> _KnownScene:
    if scene not in _KNOWN:
        _KNOWN[scene] = _KnownScene(scene)
    return _KNOWN[scene]


def _places(task: BaseTask, facts: SceneFacts, words: Vocabulary) -> dict[Place, tuple[GoalPredicate, str]]:
    try:
        plan = parse_base_instruction(task.instruction)
    except InvalidInputError:
        return {}  # an instruction of a suite of one's own, which the grammar does not cover
    return base_places(plan, task.goal, facts, words)
