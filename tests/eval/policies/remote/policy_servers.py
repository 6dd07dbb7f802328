"""Policy servers for tests: vla-eval's real one with models that answer as given, and openpi's protocol misbehaving."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import numpy as np
from vla_eval.model_servers.predict import PredictModelServer
from vla_eval.model_servers.serve import serve_async
from websockets.sync.server import serve

from conflictvla.eval.policies.remote.wire import pack_openpi

CHUNK = np.tile([0.1, 0.2, -0.3, 0.0, 0.0, 0.0, -1.0], (10, 1))

TRACEBACK = """Traceback (most recent call last):
  File "websocket_policy_server.py", line 65, in _handler
    action = self._policy.infer(obs)
KeyError: 'observation/wrist_image'
"""


class Model(PredictModelServer):  # type: ignore[misc]  # it has no types
    """A model of vla-eval's that stores what it was asked, and answers as given."""

    def __init__(
        self, answer: Callable[[dict[str, Any]], Any], *, wishes: dict[str, Any] | None = None, chunk: int | None = None
    ):
        super().__init__(chunk_size=chunk)
        self.answer, self.wishes = answer, wishes or {}
        self.asked: list[dict[str, Any]] = []
        self.episodes: list[dict[str, Any]] = []
        self.ended = 0

    def predict(self, obs: dict[str, Any], ctx: Any) -> dict[str, Any]:
        self.asked.append(obs)
        return {"actions": self.answer(obs)}

    async def on_episode_start(self, config: dict[str, Any], ctx: Any) -> None:
        self.episodes.append(config)
        await super().on_episode_start(config, ctx)

    async def on_episode_end(self, result: dict[str, Any], ctx: Any) -> None:
        self.ended += 1
        await super().on_episode_end(result, ctx)

    def get_observation_params(self) -> dict[str, Any]:
        return self.wishes


class WholeReply(Model):
    """A model of vla-eval's whose replies are given whole."""

    def __init__(self, reply: dict[str, Any]) -> None:
        super().__init__(lambda obs: None)
        self.reply = reply

    def predict(self, obs: dict[str, Any], ctx: Any) -> dict[str, Any]:
        return self.reply


@contextmanager
def vla_eval_server(model: Model, port: int = 0) -> Iterator[int]:
    """vla-eval's real server around a model; yields its port, and drops all connections at the end."""
    started: list[Any] = []
    ready = threading.Event()

    async def main() -> None:
        async with anyio.create_task_group() as group:
            bound = await group.start(functools.partial(serve_async, model, "127.0.0.1", port))
            started.extend([bound, group.cancel_scope, anyio.lowlevel.current_token()])
            ready.set()

    thread = threading.Thread(target=anyio.run, args=(main,), daemon=True)
    thread.start()
    assert ready.wait(30)
    try:
        yield started[0]
    finally:
        anyio.from_thread.run_sync(started[1].cancel, token=started[2])
        thread.join(30)


@contextmanager
def openpi_server(
    answer: Callable[[Any, bytes], None], *, greeting: bytes | str | None = None, port: int = 0
) -> Iterator[int]:
    """A server of openpi's protocol that answers each question by a function of connection and question."""

    def converse(connection: Any) -> None:
        connection.send(pack_openpi({"model": "tiny"}) if greeting is None else greeting)
        for question in connection:
            answer(connection, question)

    server = serve(converse, "127.0.0.1", port, compression=None, max_size=None)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.socket.getsockname()[1]
    finally:
        server.shutdown()


def answers(actions: Any) -> Callable[[Any, bytes], None]:
    return lambda connection, question: connection.send(pack_openpi({"actions": actions}))


def raises(connection: Any, question: bytes) -> None:
    connection.send(TRACEBACK)
    connection.close(1011, "Internal server error. Traceback included in previous frame.")


def sleeps(connection: Any, question: bytes) -> None:
    time.sleep(1.5)


def drops(connection: Any, question: bytes) -> None:
    connection.socket.shutdown(2)
