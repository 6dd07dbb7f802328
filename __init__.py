"""ConflictVLA: what does a vision-language-action model do when its task makes no sense?

The Python face. Names load on first use, so that ``import conflictvla`` costs nothing and needs no simulator.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .toolkit.rounding import pin_rounding

if TYPE_CHECKING:
    from .builders.tasks_dataset.reading import load_instances, load_tasks
    from .eval.evaluate import evaluate
    from .eval.recordings.sources import packaged_rollouts
    from .eval.scores.scores import Scores, score
    from .toolkit.errors import ConflictVLAError

__all__ = ["ConflictVLAError", "Scores", "evaluate", "load_instances", "load_tasks", "packaged_rollouts", "score"]

pin_rounding()

_HOMES = {
    "ConflictVLAError": ".toolkit.errors",
    "Scores": ".eval.scores.scores",
    "evaluate": ".eval.evaluate",
    "load_instances": ".builders.tasks_dataset.reading",
    "load_tasks": ".builders.tasks_dataset.reading",
    "packaged_rollouts": ".eval.recordings.sources",
    "score": ".eval.scores.scores",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
