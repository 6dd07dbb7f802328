"""A policy is found by whatever names it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conflictvla.eval.policies.interface import PolicyInfo
from conflictvla.eval.policies.registry import ENTRY_POINTS, load_policy, policy_for_run
from conflictvla.toolkit.errors import ConflictVLAError, InvalidInputError, NotFoundError

MISBEHAVING = Path(__file__).parents[1] / "rollouts"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of a user's that offers policies, as pip would install it."""
    metadata = tmp_path / "drifters-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: drifters\nVersion: 1.0\n")
    entries = "drift = misbehaving:Drift\nabsent = misbehaving:Absent\n"
    (metadata / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\n{entries}")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(MISBEHAVING))


@pytest.mark.usefixtures("installed")
def test_a_class_that_an_installed_package_offers_is_found_by_name() -> None:
    assert load_policy("drift").info.name == "drift"
    with pytest.raises(NotFoundError, match="module 'misbehaving' has no 'Absent'"):
        load_policy("absent")


def test_what_nobody_offers_is_refused_with_all_the_ways_to_name_a_policy() -> None:
    with pytest.raises(NotFoundError, match=r"no policy 'persits': did you mean 'persist'.* lerobot:.*module:Class"):
        load_policy("persits")


def test_a_class_in_the_working_directory_is_found_by_the_installed_command(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Mine:\n    pass\n")
    command = [str(Path(sys.executable).with_name("conflictvla")), "probe", "--policy", "mine:Mine"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Mine needs the attribute info and the methods reset and act" in done.stderr


OWN = """
from conflictvla.eval.policies.interface import PolicyInfo

class Sound:
    info = PolicyInfo(name="sound", revision="1")
    def reset(self, episode): ...
    def act(self, observation): ...

class Needs(Sound):
    def __init__(self, path): ...

class Raises(Sound):
    def __init__(self):
        raise RuntimeError("no checkpoint\\nin the second line")

class Leaves(Sound):
    def __init__(self):
        raise SystemExit(3)

class Mistyped(Sound):
    def __init__(self):
        self.chekpoint.load()

class Late(Sound):
    @property
    def info(self):
        raise ValueError("not loaded yet")

class Dict(Sound):
    info = {"name": "dict"}

class Nameless(Sound):
    info = PolicyInfo(name="", revision="1")

class Numbered(Sound):
    info = PolicyInfo(name="numbered", revision=1)

class Grouped(Sound):
    info = PolicyInfo(name="grouped", revision="1", family=3)

class Listed(Sound):
    info = PolicyInfo(name="listed", revision="1", settings=["a"])

class Nested(Sound):
    info = PolicyInfo(name="nested", revision="1", settings={"size": (2, 3)})

number, made = 3, Sound()
"""
MODULES = {
    "own": OWN,
    "unfinished": "def act(:\n",
    "raising": "raise ValueError('no GPU')\n",
    "leaving": "raise SystemExit(0)\n",
    "longing": "import no_such_stack\n",
    "mistaken": "from own import Absent\n",
}


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A user's modules, sound and faulty, in the working directory."""
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("own:Needs", "is called without arguments, and is missing a required argument: 'path'; give it a default"),
        ("own:Raises", "it cannot be made: RuntimeError: no checkpoint"),
        ("own:Leaves", "it cannot be made: SystemExit: 3"),
        ("own:Mistyped", "it cannot be made: AttributeError: 'Mistyped' object has no attribute 'chekpoint'"),
        ("own:Late", "it cannot be made: ValueError: not loaded yet"),
        ("own:Dict", "info is dict; make it PolicyInfo(name=..., revision=...)"),
        ("own:Nameless", "info.name is ''; it must be text"),
        ("own:Numbered", "info.revision is 1; it must be text"),
        ("own:Grouped", "info.family is 3; it must be text or None"),
        ("own:Listed", "info.settings is list; it must be a dict"),
        ("own:Nested", "info.settings holds 'size': (2, 3); names must be text, values text or numbers"),
        ("own:number", "number is int, not a class"),
        ("own:made", "made is Sound, not a class"),
        ("own:Absent", "module 'own' has no 'Absent'"),
        ("unfinished:A", "module 'unfinished' cannot be imported: SyntaxError: invalid syntax (unfinished.py, line 1)"),
        ("raising:A", "module 'raising' cannot be imported: ValueError: no GPU"),
        ("leaving:A", "module 'leaving' cannot be imported: SystemExit: 0"),
        ("longing:A", "no module 'no_such_stack' on the Python path"),
        ("mistaken:A", "module 'mistaken' cannot be imported: ImportError: cannot import name 'Absent'"),
        (":A", "write your own class as module:Class"),
        ("own:", "write your own class as module:Class"),
        (".own:Sound", "write your own class as module:Class"),
        ("./own.py:Sound", "write your own class as module:Class"),
        ("own.py:Sound", "write your own class as module:Class"),
        ("opnpi://host:8000", "a server as openpi://HOST:PORT or vla-eval://HOST:PORT"),
    ],
)
def test_whatever_is_wrong_with_a_class_is_one_line(spec: str, message: str) -> None:
    assert load_policy("own:Sound").info.name == "sound"
    with pytest.raises(ConflictVLAError) as caught:
        load_policy(spec)
    assert str(caught.value).startswith(f"policy '{spec}': ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("written")
def test_an_object_whose_info_cannot_be_recorded_is_refused_before_a_run() -> None:
    policy = load_policy("own:Sound")
    policy.info = PolicyInfo(name="sound", revision="1", settings={"folder": Path()})  # type: ignore[dict-item]
    with pytest.raises(InvalidInputError, match=r"policy Sound: info.settings holds 'folder': .*Path"):
        policy_for_run(policy, ["libero_goal"])
