"""Worker processes: they round as the process that starts them, and end when it does."""

from __future__ import annotations

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor

from .rounding import hand_down_rounding

MOST_WORKERS = 1024
"""More processes than any machine has room for: each of them holds a simulator."""


def worker_processes(count: int) -> ProcessPoolExecutor:
    """A pool of new processes, for simulation.

    Args:
        count: How many.
    """
    hand_down_rounding()
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(count, mp_context=context, initializer=_end_with_parent)


def _end_with_parent() -> None:
    """A process whose parent was killed would wait for work for ever, with its scenes in memory."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
