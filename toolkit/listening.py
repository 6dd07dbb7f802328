"""Whether a server can listen at an address, found out before anything is loaded for it."""

from __future__ import annotations

import socket

from .errors import InvalidInputError

LARGEST_PORT = 65535


def check_can_listen(host: str, port: int) -> None:
    """Make sure that a server can listen at an address.

    Args:
        host: Name or address of this machine.
        port: Port; 0 for any that is free.

    Raises:
        InvalidInputError: It cannot: the host is not this machine, or the port is taken, forbidden or none.
    """
    if not 0 <= port <= LARGEST_PORT:
        raise InvalidInputError(f"cannot listen at {host}:{port}: choose a port of 0 to {LARGEST_PORT:,}")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        with socket.socket(family, kind, protocol) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInputError(
            f"cannot listen at {host}:{port} ({reason}); choose another --host or --port"
        ) from error
