"""Step goals found in recorded states: LIBERO's own predicates to the step, ours by the premise checker's facts."""

from __future__ import annotations

from conflictvla.toolkit.libero.base_tasks import base_tasks

TASKS = base_tasks()
SAMPLE = (3, 23, 31, 33, 36, 39)
"""Onto a plate; a drawer and into it; a basket; a drawer that is shut; beside a plate; a microwave."""
