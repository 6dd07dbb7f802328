"""Under what a pair was rolled out, beside its prompt."""

from __future__ import annotations

from ...toolkit.records import LanguageProbe, VisualProbe

PROBES = {"language_probe": LanguageProbe.W0.value, "visual_probe": VisualProbe.V0.value}
"""Columns of probes, and their value where there is none."""
