"""A scripted agent behind a socket.

It needs the simulator's state, which no protocol carries, so the server runs the client's scene as well: equal actions
from an equal initial state give equal bits, and each question's state is checked against the twin's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ....builders.cases.instances import under_prompts
from ....builders.rollouts.refusals import rest_action
from ....builders.tasks_dataset.reading import load_instances
from ....toolkit.arrays import FloatArray
from ....toolkit.errors import InvalidInputError, NotFoundError, choices
from ....toolkit.prompts import BUILT_IN
from ....toolkit.records import Instance
from ....toolkit.simulation.scene import Scene
from ....toolkit.simulation.scene_pool import ScenePool
from ..interface import Episode, Policy, Refusal
from ..observing import observe
from ..registry import SCRIPTED, load_policy
from ..remote.openpi import OPENPI
from .server import PROTOCOLS, PolicyServer, Question

STATE_TOLERANCE_M = 1e-6
"""Largest difference of position and fingers, in m, under which client and twin stand in the same state."""

UNCHANGED_STATE = np.array([0, 1, 2, 6, 7])
"""The parts of the state that no convention changes: position and fingers."""

NEAREST = 8
"""In how many initial states, the most probable first, an episode's beginning is looked for."""


class Twin:
    """A session that runs a policy in a scene of its own, in step with its client's.

    Args:
        policy: The agent.
        instances: Among which the prompt is found.
        chunk: How many actions an answer holds; the client must execute all of them before it asks again.
        seed: Seed handed to the agent.
        scenes: Warm scenes that nobody else uses meanwhile; a pool of its own by default.
    """

    def __init__(
        self,
        policy: Policy,
        instances: Sequence[Instance],
        *,
        chunk: int = 1,
        seed: int = 0,
        scenes: ScenePool | None = None,
    ) -> None:
        self._policy, self._chunk, self._seed = policy, chunk, seed
        self._by_prompt: dict[str, list[Instance]] = {}
        for instance in instances:
            self._by_prompt.setdefault(instance.prompt_text, []).append(instance)
        self._scenes = scenes or ScenePool()
        self._unsettled: dict[str, list[FloatArray]] = {}
        self._scene: Scene | None = None
        self._prompt = ""
        self._step = 0
        self._last: tuple[FloatArray, FloatArray | Refusal] | None = None
        self._task: dict[str, Any] = {}

    def begin(self, task: dict[str, Any]) -> None:
        """An episode begins; suite, number of the task and of the initial state narrow down where."""
        self._task, self._scene, self._last = task, None, None

    def answer(self, question: Question) -> FloatArray | Refusal:
        """The agent's next actions, shape (n, 7), executed in the twin as the client is to execute them; or a refusal.

        After a refusal the twin rests for a chunk, as clients do that do not know of refusals. An agent that refuses in
        the middle of a chunk is at rest to its end, and refuses at the next question.

        Raises:
            NotFoundError: The prompt belongs to no instance.
            InvalidInputError: The state is neither the twin's nor an initial one.
        """
        if self._last is not None and question.prompt == self._prompt and _same(question.state, self._last[0]):
            return self._last[1]  # asked again, because the answer was lost
        if not self._is_in_step(question):
            self._find_episode(question)
        scene = self._scene
        assert scene is not None  # found, or an error was raised
        asked_in = observe(scene, self._step).state
        given = self._policy.act(observe(scene, self._step))
        refusal = given if isinstance(given, Refusal) else None
        actions: list[FloatArray] = []
        while len(actions) < self._chunk:
            chunk = rest_action()[np.newaxis] if isinstance(given, Refusal) else given
            for action in chunk[: self._chunk - len(actions)]:
                scene.step(np.clip(action, -1.0, 1.0).astype(np.float32))
                actions.append(action)
                self._step += 1
            if len(actions) < self._chunk and not isinstance(given, Refusal):
                given = self._policy.act(observe(scene, self._step))
        self._last = asked_in, refusal or np.stack(actions)
        return self._last[1]

    def _is_in_step(self, question: Question) -> bool:
        if self._scene is None or question.prompt != self._prompt:
            return False
        return _same(question.state, observe(self._scene, 0).state)

    def _find_episode(self, question: Question) -> None:
        """Put the twin where the client's episode begins."""
        if question.prompt not in self._by_prompt:
            raise NotFoundError(f"no instance has the prompt '{question.prompt}'; conflictvla tasks list  shows all")
        for instance, init_state in self._beginnings(question):
            scene = self._scenes.scene(instance.suite, instance.base_task)
            scene.reset(init_state)
            if _same(question.state, observe(scene, 0).state):
                self._scene, self._prompt, self._step = scene, question.prompt, 0
                self._policy.reset(
                    Episode(
                        instruction=question.prompt,
                        init_state=init_state,
                        seed=self._seed,
                        instance=instance,
                        scene=scene,
                    )
                )
                return
        self._scene = None
        raise InvalidInputError(
            "the state is neither the twin's nor an initial one of the prompt's task: client and server must have the "
            "same LIBERO and MuJoCo, scenes of the same seed, and the client must execute each chunk to its end"
        )

    def _beginnings(self, question: Question) -> Iterator[tuple[Instance, int]]:
        """Where the episode may begin, the most probable first."""
        for instance in self._by_prompt[question.prompt]:
            named = (self._task.get("suite"), self._task.get("task_id"))
            if named not in ((None, None), (instance.suite, instance.base_task_index)):
                continue
            if isinstance(self._task.get("episode_idx"), int):
                yield instance, self._task["episode_idx"]
                continue
            scene = self._scenes.scene(instance.suite, instance.base_task)
            if scene.task.task_id not in self._unsettled:
                self._unsettled[scene.task.task_id] = _unsettled_states(scene)
            places = self._unsettled[scene.task.task_id]
            away = [_distance(question.state, place) for place in places]
            yield from ((instance, int(number)) for number in np.argsort(away)[:NEAREST])


def _unsettled_states(scene: Scene) -> list[FloatArray]:
    """The state at each initial state before it settles; settling moves the hand by little."""
    places = []
    for number in range(scene.initial_state_count):
        scene.reset(number, settle_steps=0)
        places.append(observe(scene, 0).state)
    return places


def _distance(one: FloatArray, other: FloatArray) -> float:
    return float(np.abs(one[UNCHANGED_STATE] - other[UNCHANGED_STATE]).max())


def _same(one: FloatArray, other: FloatArray) -> bool:
    return _distance(one, other) < STATE_TOLERANCE_M


def serve_agent(agent: str, protocol: str, *, host: str, port: int) -> PolicyServer:
    """A server of a scripted agent; it answers once ``serve_forever`` is called.

    Args:
        agent: Name of the agent.
        protocol: ``openpi``, in chunks of as many actions as openpi's client executes; or ``vla-eval``.
        host: Address to listen at.
        port: Port to listen at; 0 for any that is free.

    Raises:
        NotFoundError: There is no such agent or protocol.
        InvalidInputError: It cannot listen there.
    """
    if agent not in SCRIPTED:
        raise NotFoundError(f"no scripted agent '{agent}' to serve: {choices(agent, list(SCRIPTED))}")
    if protocol not in PROTOCOLS:
        raise NotFoundError(f"no protocol '{protocol}': {choices(protocol, list(PROTOCOLS))}")
    instances = under_prompts(load_instances(), BUILT_IN.values())
    chunk = OPENPI.replan_steps or 1 if protocol == "openpi" else 1
    return PolicyServer(
        lambda: Twin(load_policy(agent), instances, chunk=chunk),
        protocol="openpi" if protocol == "openpi" else "vla-eval",
        name=agent,
        host=host,
        port=port,
    )
