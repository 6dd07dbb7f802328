"""Runs in an environment of its own with the real openpi-client, which needs NumPy 1: prints what it does as JSON.

With a port, it asks the server there; without, it writes what it would put on the wire.
"""

import json
import sys

import numpy as np


def request(size=4):
    rng = np.random.RandomState(0)
    return {
        "observation/image": rng.randint(256, size=(size, size, 3)).astype(np.uint8),
        "observation/wrist_image": rng.randint(256, size=(size, size, 3)).astype(np.uint8),
        "observation/state": rng.randn(8),
        "prompt": "turn on the stove",
    }


def reply():
    rng = np.random.RandomState(1)
    return {"actions": rng.randn(5, 7).astype(np.float32), "server_timing": {"infer_ms": 1.5}, "count": np.float32(2.5)}


def packed():
    from openpi_client import msgpack_numpy

    return {"request": msgpack_numpy.packb(request()).hex(), "reply": msgpack_numpy.packb(reply()).hex()}


def asked(port, state, prompt):
    from openpi_client.websocket_client_policy import WebsocketClientPolicy

    client = WebsocketClientPolicy("127.0.0.1", port)
    question = {**request(224), "observation/state": np.array(state), "prompt": prompt}
    answer = client.infer(question)
    try:
        client.infer({**question, "prompt": "no such prompt"})
        message = ""
    except RuntimeError as error:
        message = str(error)
    return {
        "metadata": client.get_server_metadata(),
        "actions": answer["actions"].tolist(),
        "timing": sorted(answer["server_timing"]),
        "message": message,
    }


def main():
    done = packed() if sys.argv[1] == "pack" else asked(int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3])
    sys.stdout.write(json.dumps(done) + "\n")


if __name__ == "__main__":
    main()
