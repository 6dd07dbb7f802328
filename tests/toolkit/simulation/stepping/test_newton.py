"""The constraint solver gives MuJoCo's results to the last bit: on scenes made to reach every branch, and LIBERO's."""

import ctypes
import platform
from pathlib import Path
from typing import Any

import mujoco
import numba
import numpy as np
import pytest

from conflictvla.toolkit.libero.base_tasks import base_tasks
from conflictvla.toolkit.libero.install import MUJOCO_VERSION
from conflictvla.toolkit.records import SUITES, BaseTask
from conflictvla.toolkit.simulation.scene import Scene
from conflictvla.toolkit.simulation.stepping.compiling import ERROR_MODEL, kernel
from conflictvla.toolkit.simulation.stepping.mujoco_library import CONTACT, offset_of
from conflictvla.toolkit.simulation.stepping.newton.problem import (
    PROCESSORS,
    ConstraintProblem,
    constraint_problem,
    read_substep,
    workspace_words,
)
from conflictvla.toolkit.simulation.stepping.newton.solver import smooth_cost, solve

from ....stock_libero import StockLibero, largest_difference

needs_processor = pytest.mark.skipif(platform.machine() not in PROCESSORS, reason="MuJoCo rounds otherwise here")

STEPS = 60
BEYOND = 12345.0
RESULTS = ("qacc", "qacc_warmstart", "qfrc_constraint", "efc_force", "efc_state")


@numba.njit(error_model=ERROR_MODEL)
def _solve(model: int, data: int, problem: ConstraintProblem) -> None:
    constraints = read_substep(data, problem)
    solve(model, data, constraints, smooth_cost(constraints))


def _results(data: Any) -> dict[str, Any]:
    return {name: np.array(getattr(data, name)) for name in RESULTS}


def _differing(
    model: Any, data: Any, problem: ConstraintProblem, mass: Any, rng: np.random.Generator, size: float
) -> list[str]:
    """What differs between both solvers' results from a warm start that is off by about ``size``."""
    mujoco.mj_forward(model, data)
    mujoco.mj_fullM(model, mass, data.qM)
    workspace = np.full(workspace_words(model.nv, min(data.nefc, problem.max_rows)) + 1, BEYOND)
    start = np.array(data.qacc_warmstart) + rng.normal(size=model.nv) * size
    data.qacc_warmstart[:] = start
    mujoco.mj_fwdConstraint(model, data)
    expected = _results(data)

    data.qacc_warmstart[:] = start
    for name in ("qacc", "qfrc_constraint", "efc_force", "efc_state"):
        getattr(data, name)[:] = 0
    _solve(model._address, data._address, problem._replace(workspace=workspace))
    assert workspace[-1] == BEYOND
    return [name for name, value in _results(data).items() if not np.array_equal(value, expected[name])]


def _heap(bodies: int, condims: tuple[int, ...], hinges: int) -> Any:
    """Boxes, balls and capsules that fall onto each other and onto a chain of hinges with friction and limits."""
    shapes = ('type="box" size=".05 .04 .03"', 'type="sphere" size=".05"', 'type="capsule" size=".03 .05"')
    objects = "".join(
        f'<body pos="{0.06 * (k % 3)} {0.05 * (k % 2)} {0.1 + 0.09 * k}"><freejoint/>'
        f'<geom {shapes[k % 3]} condim="{condims[k % len(condims)]}" friction="{0.3 + 0.2 * (k % 4)} .01 .001"/></body>'
        for k in range(bodies)
    )
    link = (
        '<body pos=".1 0 0"><joint type="hinge" axis="0 1 0" frictionloss=".2" limited="true" range="-20 20"/>'
        '<geom type="capsule" fromto="0 0 0 .1 0 0" size=".02"/>'
    )
    return mujoco.MjModel.from_xml_string(
        '<mujoco><option cone="elliptic" solver="Newton" jacobian="dense" impratio="20"/><worldbody>'
        f'<geom type="plane" size="2 2 1"/><body pos="-.2 0 .15">{link * hinges}{"</body>" * hinges}</body>{objects}'
        "</worldbody></mujoco>"
    )


@needs_processor
@pytest.mark.parametrize("condims", [(3,), (4,), (6,), (3, 4, 6)])
@pytest.mark.parametrize("bodies", range(1, 8))
def test_a_heap_of_objects_is_solved_as_by_mujoco(
    bodies: int, condims: tuple[int, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # where MuJoCo writes its warnings
    model = _heap(bodies, condims, hinges=1 + bodies % 4)
    match bodies % 4:
        case 1:
            model.opt.ls_iterations = 5  # line searches end without having converged
        case 2:
            model.opt.tolerance, model.opt.ls_tolerance = 0.0, 1e-12  # they end where rounding does not let them go on
        case 3:
            model.opt.impratio, model.geom_solref[:, 0] = 1e9, 1e-3  # factors lose their accuracy
    data, mass, rng = mujoco.MjData(model), np.zeros((model.nv, model.nv)), np.random.default_rng(bodies)
    problem = constraint_problem(model, data, mass)
    seen: set[int] = set()
    for step in range(600):
        if step % 10 == 0:
            differing = _differing(model, data, problem, mass, rng, 10.0 ** rng.integers(-9, 3))
            assert not differing, f"step {step}"
            seen.update(data.efc_state.tolist())
        data.qfrc_applied[:] = rng.normal(size=model.nv) * 0.5 * (step % 3 == 0)
        mujoco.mj_step(model, data)

    assert problem.supported
    assert seen >= {0, 1, 4}, "contacts were in each zone of their friction cones"


@needs_processor
def test_more_rows_than_the_workspace_holds_are_left_to_mujoco() -> None:
    model = _heap(5, (3,), hinges=2)
    data, mass, rng = mujoco.MjData(model), np.zeros((model.nv, model.nv)), np.random.default_rng(0)
    problem = constraint_problem(model, data, mass)._replace(max_rows=12)
    more = 0
    for _ in range(100):
        mujoco.mj_step(model, data, nstep=5)
        more += data.nefc > problem.max_rows
        assert not _differing(model, data, problem, mass, rng, 1.0)
    assert 0 < more < 100


def test_a_kernel_is_not_called_from_python() -> None:
    with pytest.raises(TypeError, match="increment: only compiled code can call it"):
        kernel(increment)(1)


def increment(number: int) -> int:
    return number + 1


@needs_processor
@pytest.mark.parametrize("suite", SUITES)
def test_a_scene_of_libero_is_solved_as_by_mujoco(suite: str) -> None:
    scene = Scene(base_tasks(suite)[3])
    model, data, rng = scene.model, scene.data, np.random.default_rng(0)
    mass = np.zeros((model.nv, model.nv))
    problem = constraint_problem(model, data, mass)
    scene.reset(0)
    for step in range(STEPS):
        scene.step(rng.uniform(-1.0, 1.0, 7))
        assert not _differing(model, data, problem, mass, rng, 10.0 ** rng.integers(-9, 3)), f"step {step}"

    assert problem.supported


@pytest.mark.slow
@pytest.mark.parametrize("task", base_tasks(), ids=lambda task: task.task_id)
def test_every_base_task_steps_as_by_libero(task: BaseTask) -> None:
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (200, 7))
    assert largest_difference(Scene(task), StockLibero(task), actions) == 0.0


@pytest.mark.parametrize(
    "option", ["cone", "solver", "jacobian", "condim", "equality", "warm start", "version", "machine"]
)
def test_what_is_not_known_is_left_to_mujoco(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = _heap(2, (1,) if option == "condim" else (3,), hinges=2)
    match option:
        case "cone":
            model.opt.cone = mujoco.mjtCone.mjCONE_PYRAMIDAL
        case "solver":
            model.opt.solver = mujoco.mjtSolver.mjSOL_CG
        case "jacobian":
            model.opt.jacobian = mujoco.mjtJacobian.mjJAC_SPARSE
        case "equality":
            model = mujoco.MjModel.from_xml_string(
                "<mujoco><option cone='elliptic'/><worldbody><body name='a'><freejoint/><geom size='.1'/></body>"
                "</worldbody><equality><connect body1='a' anchor='0 0 0'/></equality></mujoco>"
            )
        case "warm start":
            model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_WARMSTART
        case "version":
            monkeypatch.setattr(mujoco, "__version__", "3.2.4")
        case "machine":
            monkeypatch.setattr("platform.machine", lambda: "arm64")
    problem = constraint_problem(model, mujoco.MjData(model), np.zeros((model.nv, model.nv)))
    assert not problem.supported
    assert problem.workspace.size >= workspace_words(model.nv, 0)


@needs_processor
def test_a_scene_steps_alike_when_left_to_mujoco(monkeypatch: pytest.MonkeyPatch) -> None:
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (20, 7))
    states = []
    for version in (mujoco.__version__, "3.2.4"):
        monkeypatch.setattr(mujoco, "__version__", version)
        scene = Scene(base_tasks("libero_goal")[0])
        assert scene.solves_constraints == (version == MUJOCO_VERSION)
        scene.reset(0)
        for action in actions:
            scene.step(action)
        states.append(scene.state().sha256())
    assert states[0] == states[1]


def test_contacts_are_read_where_they_are() -> None:
    model = _heap(3, (3, 4, 6), hinges=2)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, nstep=400)
    assert data.ncon
    first = data.contact[0].frame.ctypes.data - offset_of("frame")
    raw = np.frombuffer(ctypes.string_at(first, data.ncon * CONTACT.itemsize), CONTACT)
    for name in CONTACT.names or ():
        assert np.array_equal(raw[name], getattr(data.contact, name)), name
