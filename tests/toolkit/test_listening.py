"""Addresses at which a server can listen, and those at which it cannot."""

from __future__ import annotations

import re
import socket

import pytest

from conflictvla.toolkit.errors import InvalidInputError
from conflictvla.toolkit.listening import check_can_listen


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "localhost"])
def test_any_free_port_of_this_machine_will_do(host: str) -> None:
    check_can_listen(host, 0)


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("nohost.invalid", 0),
        ("192.0.2.1", 0),
        ("a..b", 0),
        ("x" * 300, 0),
    ],
)
def test_what_is_not_this_machine_is_refused(host: str, port: int) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(f"cannot listen at {host}:{port} (")) as caught:
        check_can_listen(host, port)
    assert str(caught.value).endswith("; choose another --host or --port")


def test_a_port_that_is_taken_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidInputError, match=f"cannot listen at 127.0.0.1:{port} .*in use"):
            check_can_listen("127.0.0.1", port)


@pytest.mark.parametrize("port", [-1, 65536, 99999, 10**30])
def test_what_is_no_port_is_refused(port: int) -> None:
    with pytest.raises(InvalidInputError, match=f"cannot listen at 127.0.0.1:{port}: choose a port of 0 to 65,535"):
        check_can_listen("127.0.0.1", port)
