"""States are simulated on a machine that has no GL library at all.

The child runs in a mount namespace of its own in which every GL, X11 and window-system library is deleted, as in a slim
container; the machine's own files stay as they are.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conflictvla.toolkit.libero.base_tasks import base_tasks
from conflictvla.toolkit.simulation.scene import Scene

GRAPHICS_LIBRARY = re.compile(r"^lib(GL|EGL|OSMesa|OpenGL|gbm|X11|xcb)")
LIBRARY_LINE = re.compile(r"^\s+(?P<name>\S+) .* => (?P<path>/\S+)$", re.MULTILINE)
ISOLATION_REFUSED = 77

ENTER = f"""
set -e
scratch=$1; shift
{{
    mount -t tmpfs tmpfs "$scratch"
    for folder in $(cat); do
        layer="$scratch/$(echo "$folder" | tr / _)"
        mkdir -p "$layer/upper" "$layer/work"
        mount -t overlay -o "lowerdir=$folder,upperdir=$layer/upper,workdir=$layer/work" overlay "$folder"
        rm -f "$folder"/lib{{GL,EGL,OSMesa,OpenGL,gbm,X11,xcb}}*.so*
    done
}} || exit {ISOLATION_REFUSED}
exec "$@"
"""

SIMULATE = """
import ctypes

for library in ("libGL.so.1", "libEGL.so.1", "libOSMesa.so.8", "libX11.so.6"):
    try:
        ctypes.CDLL(library)
    except OSError:
        continue
    raise SystemExit(f"{library} is still there")

from conflictvla.toolkit.libero.base_tasks import base_tasks
from conflictvla.toolkit.simulation.scene import Scene

scene = Scene(base_tasks("libero_goal")[0])
scene.reset(0)
scene.step([0.3, -0.2, 0.1, 0.1, 0.0, 0.2, 1.0])
print(scene.state().sha256())
"""


def _run_without_graphics(code: str, scratch: Path) -> subprocess.CompletedProcess[str]:
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    folders = {
        os.path.realpath(Path(match["path"]).parent)
        for match in LIBRARY_LINE.finditer(listed)
        if GRAPHICS_LIBRARY.match(match["name"])
    }
    unshare = ["unshare", "--mount"] + (["--map-root-user"] if os.geteuid() else [])
    environment = {name: value for name, value in os.environ.items() if name != "MUJOCO_GL"}
    result = subprocess.run(
        [*unshare, "bash", "-c", ENTER, "bash", str(scratch), sys.executable, "-c", code],
        input="\n".join(sorted(folders)),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode == ISOLATION_REFUSED or "unshare:" in result.stderr:
        pytest.skip(f"this machine permits no mount namespace with overlays: {result.stderr.strip()}")
    return result


@pytest.mark.skipif(sys.platform != "linux", reason="hides libraries with Linux mount namespaces")
def test_scene_without_any_gl_library_gives_the_same_state(tmp_path: Path) -> None:
    result = _run_without_graphics(SIMULATE, tmp_path)

    assert result.returncode == 0, result.stderr
    scene = Scene(base_tasks("libero_goal")[0])
    scene.reset(0)
    scene.step([0.3, -0.2, 0.1, 0.1, 0.0, 0.2, 1.0])
    assert result.stdout.strip() == scene.state().sha256()
