"""A websocket connection to a policy server: opened with patience, closed for good when anything is wrong with it."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator
from typing import Any

from ....toolkit.errors import MissingExtraError, PolicyError, UnavailablePolicyError, first_line

WAIT_S = 10.0
"""How long a server that does not answer is tried again before it counts as absent."""

ANSWER_S = 300.0
"""How long an answer may take; the first one of a server may include compiling its model."""

FIRST_PAUSE_S = 0.1
"""Pause before the second attempt to connect; it doubles from one to the next."""

CLOSE_S = 0.5
"""How long a server may take to agree to a closing."""


class LostConnectionError(UnavailablePolicyError):
    """The connection broke while the server was asked; asking again on a new one may help."""


class Link:
    """One connection at a time to one server.

    Args:
        url: Such as ``ws://localhost:8000``.
        wait_s: How long a server that does not answer is tried again, in s.
        answer_s: How long an answer may take, in s.
    """

    def __init__(self, url: str, *, wait_s: float = WAIT_S, answer_s: float = ANSWER_S) -> None:
        self.url = url
        self._wait_s, self._answer_s = wait_s, answer_s
        self._socket: Any = None
        self._opened = contextlib.ExitStack()

    @property
    def is_open(self) -> bool:
        """Whether there is a connection; the server may have closed it without our knowing yet."""
        return self._socket is not None

    def open(self) -> None:
        """Connect, trying again for a while.

        Raises:
            UnavailablePolicyError: No server answers.
            PolicyError: Something answers, but not as a websocket.
            MissingExtraError: The package for websockets is not installed.
        """
        self.close()
        give_up, pause_s = time.monotonic() + self._wait_s, FIRST_PAUSE_S
        while True:
            try:
                self._socket = self._opened.enter_context(_connect(self.url, self._answer_s))
                return
            except (OSError, TimeoutError) as error:
                if time.monotonic() + pause_s > give_up:
                    raise UnavailablePolicyError(
                        f"{self.url}: no policy server answers ({error.strerror or type(error).__name__}); "
                        "start it, or correct host and port"
                    ) from error
            time.sleep(pause_s)
            pause_s *= 2.0

    def send(self, data: bytes) -> None:
        """Send a message.

        Raises:
            LostConnectionError: The connection broke.
        """
        from websockets.exceptions import ConnectionClosed

        if self._socket is None:
            raise LostConnectionError(f"{self.url}: there is no connection")
        try:
            self._socket.send(data)
        except (ConnectionClosed, OSError) as error:
            raise self._close_lost(error) from error

    def receive(self) -> bytes | str:
        """The next message of the server: bytes, or text as the server sent it.

        Raises:
            LostConnectionError: The connection broke.
            UnavailablePolicyError: There is none in time.
        """
        from websockets.exceptions import ConnectionClosed

        try:
            received: bytes | str = self._socket.recv(timeout=self._answer_s)
        except TimeoutError as error:
            self.close()  # an answer that comes too late must not be taken for the next one
            raise UnavailablePolicyError(
                f"{self.url}: no answer within {self._answer_s:g} s; for a slower server give ?answer_s=SECONDS"
            ) from error
        except (ConnectionClosed, OSError) as error:
            raise self._close_lost(error) from error
        return received

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._socket is not None:
            self._socket = None
            self._opened.close()

    def _close_lost(self, error: Exception) -> LostConnectionError:
        self.close()
        return LostConnectionError(f"{self.url}: the connection was lost ({error or type(error).__name__})")


@contextlib.contextmanager
def _connect(url: str, answer_s: float) -> Iterator[Any]:
    try:
        from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage
        from websockets.sync.client import connect
    except ImportError as error:
        raise MissingExtraError("talking to a policy server", "remote", "websockets") from error
    with contextlib.ExitStack() as opened:
        try:
            # No pings: a server that computes does not answer them. No compression: neither protocol uses it.
            connection = connect(
                url,
                compression=None,
                max_size=None,
                ping_interval=None,
                open_timeout=answer_s,
                close_timeout=CLOSE_S,
                proxy=None,
            )
            connection = opened.enter_context(connection)
        except ConnectionClosed as error:  # a server that is just ending
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)) from error
        except (InvalidHandshake, InvalidMessage) as error:
            if isinstance(error.__cause__, EOFError):  # the same
                raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)) from error
            raise PolicyError(f"{url}: something answers, but it is no policy server ({first_line(error)})") from error
        yield connection
