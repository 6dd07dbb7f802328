"""What the two websocket protocols put on the wire, byte for byte: openpi's msgpack and vla-eval's messages.

Only plain numbers become arrays; nothing that arrives is unpickled or executed.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ....toolkit.errors import InvalidInputError, MissingExtraError, first_line

VLA_EVAL_PROTOCOL = 1
"""Version of vla-eval's protocol that is supported here."""

VLA_EVAL_TYPES = ("hello", "observation", "action", "episode_start", "episode_end", "error")
"""The types of vla-eval's messages."""

PLAIN_KINDS = "biuf"
"""NumPy's letters for booleans, integers and floats."""

MOST_IMAGE_PIXELS = 4096 * 4096
"""Largest picture that is decoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message of vla-eval's protocol.

    Attributes:
        type: One of ``VLA_EVAL_TYPES``.
        payload: Its content.
        seq: Number of the message; an answer has its question's.
        timestamp: Seconds since 1970.
    """

    type: str
    payload: dict[str, Any]
    seq: int
    timestamp: float


def pack_openpi(value: Any) -> bytes:
    """Bytes as ``openpi_client.msgpack_numpy.packb`` makes them.

    Raises:
        InvalidInputError: An array holds something other than numbers.
    """
    packed: bytes = _msgpack().packb(value, default=_openpi_array)
    return packed


def unpack_openpi(data: bytes) -> Any:
    """The value of such bytes; arrays are read-only.

    Raises:
        InvalidInputError: They are no such message.
    """
    try:
        return _msgpack().unpackb(data, object_hook=_from_openpi)
    except Exception as error:  # msgpack and NumPy each have their own
        raise InvalidInputError(f"not a message of openpi's protocol: {first_line(error)}") from error


def pack_vla_eval(message: Message) -> bytes:
    """Bytes as vla-eval's ``pack_message`` makes them, pictures as PNG, its default."""
    raw = {"type": message.type, "payload": message.payload, "seq": message.seq, "timestamp": message.timestamp}
    packed: bytes = _msgpack().packb(raw, default=_vla_eval_array, use_bin_type=True)
    return packed


def unpack_vla_eval(data: bytes) -> Message:
    """The message of such bytes.

    Raises:
        InvalidInputError: They are no such message.
    """
    try:
        raw = _msgpack().unpackb(data, object_hook=_from_vla_eval, raw=False)
        message = Message(type=raw["type"], payload=raw["payload"], seq=raw["seq"], timestamp=raw["timestamp"])
    except Exception as error:  # msgpack, NumPy and Pillow each have their own
        raise InvalidInputError(f"not a message of vla-eval's protocol: {first_line(error)}") from error
    if message.type not in VLA_EVAL_TYPES or not isinstance(message.payload, dict):
        raise InvalidInputError(f"not a message of vla-eval's protocol: its type is '{message.type}'")
    return message


def _msgpack() -> Any:
    try:
        import msgpack
    except ImportError as error:
        raise MissingExtraError("talking to a policy server", "remote", "msgpack") from error
    return msgpack


def _openpi_array(value: Any) -> Any:
    if not isinstance(value, np.ndarray | np.generic):
        raise InvalidInputError(f"{type(value).__name__} cannot be sent")
    _check_plain(value.dtype)
    if isinstance(value, np.ndarray):
        return {b"__ndarray__": True, b"data": value.tobytes(), b"dtype": value.dtype.str, b"shape": value.shape}
    return {b"__npgeneric__": True, b"data": value.item(), b"dtype": value.dtype.str}


def _from_openpi(found: dict[Any, Any]) -> Any:
    if b"__ndarray__" in found:
        dtype = _check_plain(np.dtype(found[b"dtype"]))
        return np.frombuffer(found[b"data"], dtype=dtype).reshape(found[b"shape"])
    if b"__npgeneric__" in found:
        return _check_plain(np.dtype(found[b"dtype"])).type(found[b"data"])
    return found


def _vla_eval_array(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, np.ndarray):
        raise InvalidInputError(f"{type(value).__name__} cannot be sent")
    if value.ndim == 3 and value.dtype == np.uint8 and value.shape[2] in (1, 3, 4):
        return {"__image__": True, "format": "png", "data": _encode_png(value), "shape": list(value.shape)}
    _check_plain(value.dtype)
    return {"__ndarray__": True, "data": value.tobytes(), "dtype": value.dtype.str, "shape": list(value.shape)}


def _from_vla_eval(found: dict[Any, Any]) -> Any:
    if "__image__" in found and found["format"] != "raw":
        return _decode_image(found["data"])
    if "__image__" in found or "__ndarray__" in found:
        dtype = _check_plain(np.dtype(found["dtype"]))
        return np.frombuffer(found["data"], dtype=dtype).reshape(found["shape"])
    return found


def _check_plain(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.kind not in PLAIN_KINDS:
        raise InvalidInputError(f"arrays of {dtype} are not accepted, only numbers")
    return dtype


def _encode_png(image: npt.NDArray[np.uint8]) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, format="PNG")
    return buffer.getvalue()


def _decode_image(data: bytes) -> npt.NDArray[np.uint8]:
    from PIL import Image

    with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as image:
        if image.width * image.height > MOST_IMAGE_PIXELS:
            raise InvalidInputError(f"a picture of {image.width} x {image.height} pixels is too large")
        return np.array(image)
