"""The paper's eight models: every value has its source, and every documented line names a policy that can be parsed."""

from __future__ import annotations

import dataclasses
import json
import shlex

import pytest

from conflictvla.eval.policies.conventions import SETTINGS, read_conventions
from conflictvla.eval.policies.lerobot.policy import CONFIG_PREFIX, OWN_SETTINGS
from conflictvla.eval.policies.presets import PRESETS, Preset, checked_family, find_preset, with_preset
from conflictvla.eval.policies.remote.clients import REMOTE_SETTINGS
from conflictvla.eval.policies.spec import address, check_settings, read_spec
from conflictvla.toolkit.errors import InvalidInputError, NotFoundError
from conflictvla.toolkit.records import POLICY_FAMILIES, SUITES

from ..in_process import conflictvla

MODELS = ["OpenVLA", "π0-FAST", "OpenVLA-OFT", "π0", "π0.5", "VLA-JEPA", "UniVLA", "GR00T N1.7"]

every_preset = pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)


def test_there_is_one_for_each_of_the_papers_models() -> None:
    assert [preset.model for preset in PRESETS] == MODELS


def test_the_papers_four_families_hold_its_eight_models() -> None:
    grouped = {family: [preset.model for preset in PRESETS if preset.family == family] for family in POLICY_FAMILIES}
    assert list(grouped.values()) == [
        ["OpenVLA", "π0-FAST"],
        ["OpenVLA-OFT", "π0", "π0.5"],
        ["VLA-JEPA", "UniVLA"],
        ["GR00T N1.7"],
    ]


@pytest.mark.parametrize("family", ["", "  ", "two\nlines", "x" * 61])
def test_a_family_that_tables_cannot_show_is_refused(family: str) -> None:
    with pytest.raises(InvalidInputError, match=r"--family .*give one line of 1 to 60 characters"):
        checked_family(family)


@every_preset
def test_every_value_has_a_source(preset: Preset) -> None:
    assert set(preset.sources) >= {"policy", "horizons", *SETTINGS}
    assert all(preset.sources.values())
    assert set(preset.horizons) == set(SUITES)
    if preset.server is not None:
        assert preset.sources["server"]


@every_preset
def test_its_line_gives_its_conventions(preset: Preset) -> None:
    program, command, *options = shlex.split(preset.command())
    given = dict(zip(options[::2], options[1::2], strict=True))
    assert (program, command) == ("conflictvla", "run")
    spec = read_spec(with_preset(given["--policy"], given["--preset"]))
    known = OWN_SETTINGS if preset.scheme == "lerobot" else REMOTE_SETTINGS
    check_settings(spec, [*SETTINGS, *known, *(name for name in spec.settings if name.startswith(CONFIG_PREFIX))])
    other = dataclasses.replace(preset.conventions, images="raw", image_size=1, gripper="flip", axis_angle="shortest")
    assert read_conventions(spec.settings, other, "here") == preset.conventions
    assert spec.settings["name"] == preset.name
    if preset.scheme != "lerobot":
        assert address(spec) == ("localhost", 8000)


def test_what_the_user_says_wins() -> None:
    spec = read_spec(with_preset("openpi://gpu-box:9000?replan_steps=10", "pi05"))
    assert spec.target == "gpu-box:9000"
    assert spec.settings["replan_steps"] == "10"
    assert spec.settings["image_size"] == "224"


def test_a_preset_that_does_not_exist_or_fit_is_refused() -> None:
    with pytest.raises(NotFoundError, match=r"no preset 'pi0\.5': did you mean 'pi05'"):
        find_preset("pi0.5")
    with pytest.raises(InvalidInputError, match="--preset pi05 is for openpi, and the policy is 'persist'"):
        with_preset("persist", "pi05")


def test_the_command_lists_them_and_shows_one_with_its_sources() -> None:
    assert [shown["model"] for shown in json.loads(conflictvla("presets", "--json").stdout)] == MODELS
    shown = conflictvla("presets", "openvla-oft").stdout
    assert "gripper  snap" in shown
    assert "vla_eval/benchmarks/libero/benchmark.py" in shown
    wrong = conflictvla("run", "--policy", "persist", "--preset", "pi05", "--out", "nowhere")
    assert (wrong.returncode, wrong.stderr.strip()) == (
        2,
        "error: --preset pi05 is for openpi, and the policy is 'persist'",
    )
