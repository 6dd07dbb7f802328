"""One self-contained HTML page about the scores of recorded rollouts."""

from .page import write_report

__all__ = ["write_report"]
