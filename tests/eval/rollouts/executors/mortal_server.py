"""A policy server that dies once, in mid-rollout: ``python mortal_server.py PROTOCOL PORT FLAG``.

It answers by the picture alone, so that the same rollout is the same wherever it is begun again.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import numpy as np
from vla_eval.model_servers.predict import PredictModelServer
from vla_eval.model_servers.serve import serve_async
from websockets.sync.server import serve

from conflictvla.eval.policies.remote.wire import pack_openpi, unpack_openpi

DIES_AT = 6
"""Question at which it dies, unless the flag is there."""

asked = 0


def _answer(image: Any, flag: Path) -> Any:
    global asked
    asked += 1
    if asked == DIES_AT and not flag.exists():
        flag.touch()
        os._exit(1)
    return np.full(7, float(np.mean(image)) / 2550.0)


class Mortal(PredictModelServer):  # type: ignore[misc]  # it has no types
    def __init__(self, flag: Path) -> None:
        super().__init__(chunk_size=None)
        self._flag = flag

    def predict(self, obs: dict[str, Any], ctx: Any) -> dict[str, Any]:
        return {"actions": _answer(obs["images"]["agentview"], self._flag)}


def _converse(flag: Path, connection: Any) -> None:
    connection.send(pack_openpi({"model": "mortal"}))
    for question in connection:
        action = _answer(unpack_openpi(question)["observation/image"], flag)
        connection.send(pack_openpi({"actions": action[np.newaxis]}))


if __name__ == "__main__":
    protocol, port, path = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    if protocol == "vla-eval":
        anyio.run(functools.partial(serve_async, Mortal(path), "127.0.0.1", port))
    else:
        serve(functools.partial(_converse, path), "127.0.0.1", port, compression=None, max_size=None).serve_forever()
