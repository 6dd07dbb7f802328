"""How often files are opened, whoever opens them: Arrow does so outside Python, where no audit hook sees it."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

ACCESS, CLOSE, OPEN = 0x1, 0x10, 0x20
"""Linux's inotify events; without the others, two successive openings would be reported as one."""

NONBLOCK = 0o4000

needs_inotify = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's inotify")


@contextmanager
def counted_openings(files: Sequence[Path]) -> Iterator[Counter[Path]]:
    """A count that is filled when the block ends: how often each of the files was opened in it."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.inotify_init1(NONBLOCK)
    watched = {libc.inotify_add_watch(descriptor, os.fsencode(file), ACCESS | CLOSE | OPEN): file for file in files}
    assert min(descriptor, *watched) >= 0, os.strerror(ctypes.get_errno())
    openings: Counter[Path] = Counter()
    try:
        yield openings
        events = os.read(descriptor, 1 << 20)
    finally:
        os.close(descriptor)
    while events:
        watch, mask, _, name_length = struct.unpack_from("iIII", events)
        openings[watched[watch]] += bool(mask & OPEN)
        events = events[16 + name_length :]
