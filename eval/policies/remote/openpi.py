"""A policy behind openpi's websocket protocol: ``openpi://HOST:PORT``.

The protocol knows neither episodes nor seeds: each question stands for itself. That lets a question be asked again on a
new connection, and leaves a stochastic model unseeded.
"""

from __future__ import annotations

from typing import Any

from ....toolkit.arrays import FloatArray
from ....toolkit.errors import PolicyError
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
from .wire import pack_openpi, unpack_openpi

OPENPI = Conventions(image_size=224, replan_steps=5)
"""openpi's own LIBERO client (``examples/libero/main.py``)."""

ATTEMPTS = 3
"""How many connections are tried for one question."""


class OpenPiPolicy:
    """A policy server of openpi; it is connected to at once, so that one that is missing is found before a run.

    Args:
        spec: What the user wrote.

    Raises:
        PolicyError: No such server answers.
        NotFoundError: There is no such setting.
        InvalidInputError: A setting makes no sense.
    """

    def __init__(self, spec: PolicySpec) -> None:
        check_settings(spec, (*SETTINGS, *REMOTE_SETTINGS))
        self.conventions = read_conventions(spec.settings, OPENPI, f"policy '{spec.text}'")
        self._link: Link = open_link(spec)
        metadata = self._read_greeting()
        self.info: PolicyInfo = server_info(spec, self.conventions, metadata)
        self._instruction = ""

    def reset(self, episode: Episode) -> None:
        """Begin an episode: from now on the prompt is its instruction."""
        self._instruction = episode.instruction

    def act(self, observation: Observation) -> FloatArray | Refusal:
        """The server's next actions, shape (n, 7), or its refusal.

        Raises:
            PolicyError: The server is gone, raised, or answered with something else than actions.
        """
        question = pack_openpi(
            {
                "observation/image": picture(observation, AGENTVIEW, self.conventions),
                "observation/wrist_image": picture(observation, WRIST, self.conventions),
                "observation/state": state_vector(observation, self.conventions),
                "prompt": self._instruction,
            }
        )
        answer = self._ask_server(question)
        refusal = read_refusal(answer, self._link.url) if isinstance(answer, dict) else None
        if refusal is not None:
            return refusal
        if not isinstance(answer, dict) or "actions" not in answer:
            raise PolicyError(f"{self._link.url}: the answer holds no actions")
        chunk = action_chunk(answer["actions"], self._link.url, self.conventions)
        return executable_actions(chunk, self.conventions)

    def _ask_server(self, question: bytes) -> Any:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                if not self._link.is_open:
                    self._link.open()
                    self._read_greeting()
                self._link.send(question)
                return self._receive()
            except LostConnectionError:
                if attempt == ATTEMPTS:
                    raise
        raise AssertionError  # the loop returns or raises

    def _read_greeting(self) -> dict[str, Any]:
        """The metadata that the server sends on connecting."""
        metadata = self._receive()
        if not isinstance(metadata, dict):
            raise PolicyError(f"{self._link.url}: not a server of openpi's: it does not begin with its metadata")
        return metadata

    def _receive(self) -> Any:
        received = self._link.receive()
        if isinstance(received, str):
            self._link.close()
            lines = [line for line in received.splitlines() if line.strip()] or ["nothing more"]
            raise PolicyError(f"{self._link.url}: the server raised {lines[-1].strip()}")
        try:
            return unpack_openpi(received)
        except ValueError as error:
            self._link.close()
            raise PolicyError(f"{self._link.url}: {error}") from error
