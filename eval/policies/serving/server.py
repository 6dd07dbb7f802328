"""A policy server on either websocket protocol, for what answers one client's questions.

What the wire carries is openpi's and vla-eval's own, so their clients cannot tell the difference.
"""

from __future__ import annotations

import http
import importlib.metadata
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

import numpy as np

from ....builders.rollouts.refusals import rest_action
from ....toolkit.arrays import FloatArray
from ....toolkit.errors import InvalidInputError, MissingExtraError, describe_error
from ....toolkit.listening import check_can_listen
from ..interface import Refusal
from ..remote.clients import REFUSAL_KEY
from ..remote.wire import VLA_EVAL_PROTOCOL, Message, pack_openpi, pack_vla_eval, unpack_openpi, unpack_vla_eval

ServedProtocol = Literal["openpi", "vla-eval"]
PROTOCOLS: tuple[str, ...] = get_args(ServedProtocol)
HEALTH_PATHS = {"openpi": ("/healthz", "OK\n"), "vla-eval": ("/health", '{"status": "ok"}\n')}
RESTING_CHUNK = 50
"""Actions of rest beside a refusal under openpi: clients that do not know of refusals execute some of them."""

INTERNAL_ERROR = 1011
"""Websocket close code after a traceback, as openpi's server closes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a client wants to know.

    Attributes:
        prompt: The instruction.
        state: LIBERO's 8-D state.
    """

    prompt: str
    state: FloatArray


class Session(Protocol):
    """Answers one client, question by question."""

    def begin(self, task: dict[str, Any]) -> None:
        """An episode begins; ``task`` is vla-eval's description of it."""

    def answer(self, question: Question) -> FloatArray | Refusal:
        """The next actions, shape (n, 7); under vla-eval n is 1. Or a refusal."""


class PolicyServer:
    """Serves one session a connection, each on a thread of its own.

    Args:
        new_session: Makes the session of a new client.
        protocol: ``openpi`` or ``vla-eval``.
        name: What the server reports that it is.
        host: Address to listen at.
        port: Port to listen at; 0 for any that is free.

    Attributes:
        port: The port it listens at.

    Raises:
        InvalidInputError: It cannot listen there.
        MissingExtraError: The packages for websockets are not installed.
    """

    def __init__(
        self,
        new_session: Callable[[], Session],
        *,
        protocol: ServedProtocol,
        name: str,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        try:
            from websockets.sync.server import serve
        except ImportError as error:
            raise MissingExtraError("serving a policy", "remote", "websockets") from error
        self._new_session, self._name = new_session, name
        converse = {"openpi": self._converse_openpi, "vla-eval": self._converse_vla_eval}[protocol]
        path, body = HEALTH_PATHS[protocol]

        def answer_health(connection: Any, request: Any) -> Any:
            return connection.respond(http.HTTPStatus.OK, body) if request.path == path else None

        check_can_listen(host, port)
        self._server = serve(
            converse,
            host,
            port,
            process_request=answer_health,
            compression=None,
            max_size=None,
            ping_interval=None,
        )
        self.port: int = self._server.socket.getsockname()[1]

    def serve_forever(self) -> None:
        """Answer clients until ``shutdown``."""
        self._server.serve_forever()

    def shutdown(self) -> None:
        """Stop listening; may be called from another thread."""
        self._server.shutdown()

    def _converse_openpi(self, connection: Any) -> None:
        """Metadata first; then an answer a question, or a traceback and the end."""
        from websockets.exceptions import ConnectionClosed

        session = self._new_session()
        connection.send(pack_openpi({"policy": self._name}))
        try:
            for data in connection:
                started = time.perf_counter()
                answer = session.answer(_openpi_question(unpack_openpi(data)))
                timing = {"infer_ms": (time.perf_counter() - started) * 1000.0}
                reply = _refusal_reply(answer, RESTING_CHUNK) if isinstance(answer, Refusal) else {"actions": answer}
                connection.send(pack_openpi({**reply, "server_timing": timing}))
        except ConnectionClosed:
            return
        except Exception:  # openpi's protocol reports it to the client, whatever it is
            connection.send(traceback.format_exc())
            connection.close(INTERNAL_ERROR, "Internal server error. Traceback included in previous frame.")

    def _converse_vla_eval(self, connection: Any) -> None:
        """Greetings, episodes, and one action an observation; an error is reported, and the connection goes on."""
        from websockets.exceptions import ConnectionClosed

        session = self._new_session()
        try:
            for data in connection:
                message = unpack_vla_eval(data)
                try:
                    reply = self._vla_eval_reply(session, message)
                except Exception as error:  # vla-eval's protocol reports it to the client, whatever it is
                    failed = "episode_start_failed" if message.type == "episode_start" else "observation_failed"
                    reply = ("error", {"error": f"{failed}: {describe_error(error)}"})
                if reply is not None:
                    kind, payload = reply
                    sent = Message(type=kind, payload=payload, seq=message.seq, timestamp=time.time())
                    connection.send(pack_vla_eval(sent))
        except ConnectionClosed:
            return

    def _vla_eval_reply(self, session: Session, message: Message) -> tuple[str, dict[str, Any]] | None:
        if message.type == "hello":
            return "hello", {
                "harness_version": f"conflictvla-{importlib.metadata.version('conflictvla')}",
                "protocol_version": VLA_EVAL_PROTOCOL,
                "model_server": self._name,
                "capabilities": {},
                "observation_params": {"send_state": True, "quat_no_antipodal": True},
            }
        if message.type == "episode_start":
            session.begin(message.payload.get("task") or {})
        if message.type == "observation":
            answer = session.answer(_vla_eval_question(message.payload))
            reply = _refusal_reply(answer, 1) if isinstance(answer, Refusal) else {"actions": answer}
            # vla-eval's clients take one action at a time.
            (action,) = reply["actions"]
            return "action", {**reply, "actions": action.astype(np.float32)}
        return None


def _refusal_reply(refusal: Refusal, steps: int) -> dict[str, Any]:
    """An answer with a refusal, and so many actions of rest for clients that do not know of refusals."""
    return {
        "actions": np.tile(rest_action(), (steps, 1)),
        REFUSAL_KEY: {"kind": refusal.kind, "text": refusal.text},
    }


def _openpi_question(request: Any) -> Question:
    if not isinstance(request, dict) or not {"prompt", "observation/state"} <= request.keys():
        raise InvalidInputError("a request needs prompt and observation/state")
    return _question(request["prompt"], request["observation/state"])


def _vla_eval_question(payload: dict[str, Any]) -> Question:
    if not {"task_description", "states"} <= payload.keys():
        raise InvalidInputError("an observation needs task_description and states; see observation_params")
    return _question(payload["task_description"], payload["states"])


def _question(prompt: Any, state: Any) -> Question:
    numbers = np.asarray(state, dtype=np.float64)
    if numbers.shape != (8,):
        raise InvalidInputError(f"the state has shape {numbers.shape}, not (8,)")
    return Question(prompt=str(prompt), state=numbers)
