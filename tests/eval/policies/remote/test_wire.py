"""What goes over the wire is what the real packages put there, and what comes in cannot be made to do harm."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
from PIL import Image
from vla_eval.protocol import messages

from conflictvla.eval.policies.remote.wire import Message, pack_openpi, pack_vla_eval, unpack_openpi, unpack_vla_eval
from conflictvla.toolkit.errors import InvalidInputError

from .openpi_real_client import reply, request

RECORDED = json.loads(Path(__file__).with_name("openpi_wire.json").read_text())
"""What openpi-client 0.1.2 packs; ``openpi_real_client.py pack`` prints it."""

PICTURE = np.arange(192, dtype=np.uint8).reshape(8, 8, 3)
PAYLOAD: dict[str, Any] = {
    "images": {"agentview": PICTURE},
    "task_description": "turn on the stove",
    "states": np.linspace(0.0, 1.0, 8),
    "controller_states": np.linspace(0.0, 1.0, 8, dtype=np.float32),
    "count": np.int64(3),
}


def test_openpi_messages_are_the_real_clients_bytes() -> None:
    assert pack_openpi(request()).hex() == RECORDED["request"]
    assert pack_openpi(reply()).hex() == RECORDED["reply"]


def test_openpi_messages_are_read_back() -> None:
    found = unpack_openpi(bytes.fromhex(RECORDED["reply"]))
    np.testing.assert_array_equal(found["actions"], reply()["actions"])
    assert found["actions"].dtype == np.float32
    assert found["count"] == np.float32(2.5)


@pytest.mark.parametrize("kind", messages.MessageType)
def test_vla_eval_messages_are_the_real_packages_bytes(kind: messages.MessageType) -> None:
    theirs = messages.pack_message(messages.Message(type=kind, payload=PAYLOAD, seq=7, timestamp=1.5))
    assert pack_vla_eval(Message(type=kind.value, payload=PAYLOAD, seq=7, timestamp=1.5)) == theirs
    found = unpack_vla_eval(theirs)
    assert (found.type, found.seq, found.timestamp) == (kind.value, 7, 1.5)
    for name in ("states", "controller_states"):
        np.testing.assert_array_equal(found.payload[name], PAYLOAD[name])
    np.testing.assert_array_equal(found.payload["images"]["agentview"], PICTURE)


@pytest.mark.parametrize("image_format", ["raw", "jpeg"])
def test_pictures_in_vla_evals_other_formats_are_read(image_format: str) -> None:
    from vla_eval.protocol.image_codec import decode_image, encode_image

    encoded = encode_image(PICTURE, image_format)
    data = msgpack.packb({"type": "error", "payload": {"image": encoded}, "seq": 0, "timestamp": 0.0})
    np.testing.assert_array_equal(unpack_vla_eval(data).payload["image"], decode_image(encoded))


def _openpi_array(dtype: str, data: bytes, shape: list[int]) -> bytes:
    return bytes(msgpack.packb({b"__ndarray__": True, b"data": data, b"dtype": dtype, b"shape": shape}))


def _vla_eval(payload: object, kind: str = "action") -> bytes:
    return bytes(msgpack.packb({"type": kind, "payload": payload, "seq": 0, "timestamp": 0.0}))


def _huge_png() -> bytes:
    buffer = io.BytesIO()
    Image.new("1", (5000, 5000)).save(buffer, format="PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        _openpi_array("|O8", pickle.dumps([1]), [1]),
        _openpi_array("<c16", bytes(16), [1]),
        _openpi_array("<f4", bytes(4), [1000]),
        b"\xc1",
        b"",
    ],
    ids=["objects", "complex", "too short", "no msgpack", "empty"],
)
def test_what_is_no_openpi_message_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInputError, match="not a message of openpi's protocol"):
        unpack_openpi(data)


@pytest.mark.parametrize(
    "data",
    [
        _vla_eval({"x": {"__ndarray__": True, "data": pickle.dumps([1]), "dtype": "|O8", "shape": [1]}}),
        _vla_eval({"x": {"__image__": True, "format": "png", "data": b"GIF89a", "shape": [1, 1, 3]}}),
        _vla_eval({"x": {"__image__": True, "format": "png", "data": _huge_png(), "shape": [5000, 5000, 1]}}),
        _vla_eval({}, kind="shutdown"),
        _vla_eval([1, 2]),
        msgpack.packb({"type": "action"}),
        b"traceback",
    ],
    ids=["objects", "no png", "huge picture", "unknown type", "no payload", "fields missing", "text"],
)
def test_what_is_no_vla_eval_message_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInputError, match="not a message of vla-eval's protocol"):
        unpack_vla_eval(data)


def test_what_is_no_number_is_not_sent() -> None:
    for pack in (pack_openpi, lambda value: pack_vla_eval(Message(type="error", payload=value, seq=0, timestamp=0.0))):
        with pytest.raises(InvalidInputError, match="only numbers"):
            pack({"x": np.array([object()])})
        with pytest.raises(InvalidInputError, match="cannot be sent"):
            pack({"x": Path()})
