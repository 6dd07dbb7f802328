"""The page on settings names every setting, check and preset; that its commands run is for ``test_docs``."""

from __future__ import annotations

import re

from conflictvla.eval.policies.conventions import CHOICES, SETTINGS
from conflictvla.eval.policies.learned.policy import LANGUAGE
from conflictvla.eval.policies.lerobot.policy import OWN_SETTINGS
from conflictvla.eval.policies.presets import PRESETS
from conflictvla.eval.policies.remote.clients import REMOTE_SETTINGS
from conflictvla.eval.preflight.checks import CHECKS

from ...pages import PAGES

PAGE = (PAGES / "evaluate/settings.md").read_text(encoding="utf-8")


def test_each_preset_has_its_line() -> None:
    assert re.findall(r"^conflictvla .*--preset .*[^\\]$", PAGE, re.MULTILINE) == [
        preset.command() for preset in PRESETS
    ]


def test_every_setting_and_check_is_named() -> None:
    for name in (*SETTINGS, *REMOTE_SETTINGS, *OWN_SETTINGS, *(word for words in CHOICES.values() for word in words)):
        assert re.search(rf"`{name}(=1)?`", PAGE), name
    assert all(f"language={choice}`" in PAGE for choice in LANGUAGE)
    assert re.findall(r"^\| ([a-z ]+) \| [a-z]", PAGE.split("| check |")[1], re.MULTILINE) == list(CHECKS)
