"""A policy behind vla-eval's websocket protocol: ``vla-eval://HOST:PORT``.

The server is notified when an episode begins, and may store anything until it ends, such as a chunk that it hands out
one action at a time. It therefore receives every observation, and an episode does not survive its connection.
"""

from __future__ import annotations

import importlib.metadata
import time
from typing import Any

import numpy as np

from ....toolkit.arrays import Float32Array, FloatArray
from ....toolkit.errors import InvalidInputError, PolicyError
from ..conventions import (
    AGENTVIEW,
    SETTINGS,
    WRIST,
    Conventions,
    executable_actions,
    picture,
    read_conventions,
    state_vector,
)
from ..interface import Episode, Observation, PolicyInfo, Refusal
from ..spec import PolicySpec, check_settings
from .clients import REMOTE_SETTINGS, action_chunk, open_link, read_refusal, server_info
from .link import Link, LostConnectionError
from .wire import VLA_EVAL_PROTOCOL, Message, pack_vla_eval, unpack_vla_eval


class VlaEvalPolicy:
    """A model server of vla-eval; it is connected to at once, so that one that is missing is found before a run.

    Args:
        spec: What the user wrote.

    Raises:
        PolicyError: No such server answers, or it drives the arm in another way than LIBERO's by default.
        NotFoundError: There is no such setting.
        InvalidInputError: A setting makes no sense.
    """

    def __init__(self, spec: PolicySpec) -> None:
        check_settings(spec, (*SETTINGS, *REMOTE_SETTINGS))
        self._seq = 0
        self._link: Link = open_link(spec)
        greeting = self._exchange_greetings()
        # Of its wishes those about observations are met; the others concern how vla-eval itself sets up episodes.
        self._wishes: dict[str, Any] = greeting.get("observation_params") or {}
        if self._wishes.get("absolute_action"):
            raise PolicyError(f"{self._link.url}: the server gives absolute poses; only LIBERO's deltas are executed")
        self.conventions = read_conventions(spec.settings, _as_vla_eval(self._wishes), f"policy '{spec.text}'")
        self.info: PolicyInfo = server_info(spec, self.conventions, greeting)
        self._episode: Episode | None = None

    def reset(self, episode: Episode) -> None:
        """Begin an episode; the server receives what vla-eval sends: prompt, suite, task and initial state.

        Raises:
            PolicyError: The server is gone.
        """
        try:
            self._start(episode)
        except LostConnectionError:  # the server went since the last episode, and may be back
            self._start(episode)

    def act(self, observation: Observation) -> FloatArray | Refusal:
        """The server's next actions, shape (n, 7), or its refusal.

        Raises:
            PolicyError: The server is gone, raised, or answered with something else than actions.
        """
        assert self._episode is not None  # reset comes first
        try:
            answer = self._ask_server(self._question(observation, self._episode))
        except LostConnectionError as error:
            self._episode = None
            raise LostConnectionError(f"{error}, and with it what the server knew of the episode") from error
        refusal = read_refusal(answer, self._link.url)
        if refusal is not None:
            return refusal
        if "actions" not in answer and "action" not in answer:
            raise PolicyError(f"{self._link.url}: the answer holds no actions")
        chunk = action_chunk(answer.get("actions", answer.get("action")), self._link.url, self.conventions)
        return executable_actions(chunk, self.conventions)

    def _start(self, episode: Episode) -> None:
        if self._link.is_open and self._episode is not None:
            self._send("episode_end", {})
        self._episode = None
        if not self._link.is_open:
            self._link.open()
            self._exchange_greetings()
        self._send("episode_start", {"task": _task(episode)})
        self._episode = episode

    def _question(self, observation: Observation, episode: Episode) -> dict[str, Any]:
        images = {"agentview": picture(observation, AGENTVIEW, self.conventions)}
        if self._wishes.get("send_wrist_image"):
            images["wrist"] = picture(observation, WRIST, self.conventions)
        question: dict[str, Any] = {"images": images, "task_description": episode.instruction}
        if self._wishes.get("send_state"):
            state = state_vector(observation, self.conventions)
            state[3:6] = state[3:6].astype(np.float32)  # vla-eval's own observation rounds the angles
            question["states"] = state
            question["controller_states"] = _controller_state(observation, episode)
        return question

    def _ask_server(self, question: dict[str, Any]) -> dict[str, Any]:
        seq = self._send("observation", question)
        while True:
            answer = self._receive()
            if answer.type == "error":
                self._link.close()  # nobody knows what state the server is in
                raise PolicyError(f"{self._link.url}: the server raised {_error_line(answer.payload)}")
            if answer.type == "action" and answer.seq == seq:
                return answer.payload

    def _exchange_greetings(self) -> dict[str, Any]:
        """Exchange greetings; returns what the server sends about itself."""
        self._seq = 0
        harness = f"conflictvla-{importlib.metadata.version('conflictvla')}"
        self._send("hello", {"harness_version": harness, "protocol_version": VLA_EVAL_PROTOCOL})
        reply = self._receive()
        if reply.type != "hello":
            raise PolicyError(
                f"{self._link.url}: not a server of vla-eval's: it answers a greeting with '{reply.type}'"
            )
        version = reply.payload.get("protocol_version")
        if version != VLA_EVAL_PROTOCOL:
            raise PolicyError(f"{self._link.url}: the server has version {version} of the protocol, not 1")
        return reply.payload

    def _send(self, kind: str, payload: dict[str, Any]) -> int:
        self._seq += 1
        self._link.send(pack_vla_eval(Message(type=kind, payload=payload, seq=self._seq, timestamp=time.time())))
        return self._seq

    def _receive(self) -> Message:
        received = self._link.receive()
        try:
            return unpack_vla_eval(received if isinstance(received, bytes) else received.encode())
        except InvalidInputError as error:
            self._link.close()
            raise PolicyError(f"{self._link.url}: {error}") from error


def _as_vla_eval(wishes: dict[str, Any]) -> Conventions:
    """What vla-eval's own LIBERO benchmark does: gripper snapped, and the shortest rotation unless asked otherwise."""
    return Conventions(gripper="snap", axis_angle="robosuite" if wishes.get("quat_no_antipodal") else "shortest")


def _task(episode: Episode) -> dict[str, Any]:
    """A task as vla-eval describes it; of a conflict it contains the prompt only."""
    return {
        "name": episode.instruction,
        "suite": episode.instance.suite,
        "task_id": episode.instance.base_task_index,
        "episode_idx": episode.init_state,
    }


def _controller_state(observation: Observation, episode: Episode) -> Float32Array:
    """The controller's own idea of the hand: that of the site between the fingertips, turned against the hand's."""
    from scipy.spatial.transform import Rotation

    site = episode.scene.arm.grip_site
    rotation = Rotation.from_matrix(np.array(episode.scene.data.site_xmat[site]).reshape(3, 3)).as_rotvec()
    state: FloatArray = np.concatenate([observation.eef_pos_m, rotation, observation.gripper_pos_m])
    return state.astype(np.float32)


def _error_line(payload: dict[str, Any]) -> str:
    lines = str(payload.get("error", payload)).strip().splitlines() or ["nothing more"]
    return lines[-1].strip() if lines[0].startswith("Traceback") else lines[0].strip()
