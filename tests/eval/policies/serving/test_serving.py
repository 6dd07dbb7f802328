"""A scripted agent behind a socket does what it does without one, whoever the client is."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from vla_eval.connection import Connection
from vla_eval.types import Observation as VlaEvalObservation

from conflictvla.builders.rollouts.schema import Rollout
from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.policies.interface import Policy
from conflictvla.eval.policies.observing import observe
from conflictvla.eval.policies.registry import load_policy
from conflictvla.eval.policies.serving.served_agent import Twin
from conflictvla.eval.policies.serving.server import PolicyServer, ServedProtocol
from conflictvla.eval.rollouts.jobs import Job
from conflictvla.eval.rollouts.rollout import run_rollout
from conflictvla.eval.rollouts.versions import installed_versions
from conflictvla.toolkit.errors import InvalidInputError, PolicyError
from conflictvla.toolkit.records import Instance
from conflictvla.toolkit.simulation.scene_pool import ScenePool

TASK = "turn_on_the_stove"
CHUNK = 5


@pytest.fixture(scope="module")
def instances() -> tuple[Instance, ...]:
    """A reference and a conflict under both prompts, cut to a few steps."""
    return tuple(dataclasses.replace(i, horizon=10) for i in load_instances() if i.base_task == TASK)


@pytest.fixture(scope="module")
def scenes() -> ScenePool:
    return ScenePool(capacity=4)


TWINS = ScenePool(capacity=4)
"""The servers' scenes; one client at a time."""


@contextmanager
def served(agent: str, protocol: ServedProtocol, *, chunk: int = 1) -> Iterator[int]:
    server = PolicyServer(
        lambda: Twin(load_policy(agent), load_instances(), chunk=chunk, scenes=TWINS), protocol=protocol, name=agent
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.port
    finally:
        server.shutdown()


def _rollout(policy: Policy, instance: Instance, scenes: ScenePool, *, init_state: int) -> Rollout:
    scene = scenes.scene(instance.suite, instance.base_task)
    return run_rollout(
        scene, policy, Job(instance=instance, init_state=init_state, seed=0), versions=installed_versions()
    )


@pytest.mark.parametrize(("protocol", "chunk"), [("openpi", CHUNK), ("vla-eval", 1)])
def test_a_served_agents_rollouts_are_the_bits_of_the_agents_own(
    protocol: ServedProtocol, chunk: int, instances: tuple[Instance, ...], scenes: ScenePool
) -> None:
    chosen = [instances[0], *[i for i in instances if i.case_id is not None][1:2]]
    with served("persist", protocol, chunk=chunk) as port:
        remote = load_policy(f"{protocol}://127.0.0.1:{port}?image_size=64")
        for init_state, instance in enumerate(chosen):
            through, direct = (
                _rollout(policy, instance, scenes, init_state=init_state) for policy in (remote, load_policy("persist"))
            )
            for name, frames in direct.frames.items():
                np.testing.assert_array_equal(through.frames[name], frames, err_msg=name)


@pytest.mark.parametrize(("protocol", "chunk"), [("openpi", CHUNK), ("vla-eval", 1)])
def test_a_served_agents_refusals_arrive_as_they_are(
    protocol: ServedProtocol, chunk: int, instances: tuple[Instance, ...], scenes: ScenePool
) -> None:
    """Also again and again, and before and after rollouts that are not refused."""
    conflict = next(i for i in instances if i.case_id is not None)
    with served("refuse_aloud", protocol, chunk=chunk) as port:
        remote = load_policy(f"{protocol}://127.0.0.1:{port}?image_size=64")
        for instance in (conflict, conflict, instances[0], conflict):
            through, direct = (
                _rollout(policy, instance, scenes, init_state=2) for policy in (remote, load_policy("refuse_aloud"))
            )
            for name in ("end", "refusal_kind", "refusal_text", "refusal_step"):
                assert getattr(through.episode, name) == getattr(direct.episode, name)
            assert through.episode.end == ("refused" if instance is conflict else "horizon")
            np.testing.assert_array_equal(through.sim_states, direct.sim_states)


@pytest.mark.parametrize(("protocol", "chunk"), [("openpi", CHUNK), ("vla-eval", 1)])
def test_a_client_that_knows_no_refusals_rests(
    protocol: ServedProtocol, chunk: int, instances: tuple[Instance, ...], scenes: ScenePool
) -> None:
    conflict = next(i for i in instances if i.case_id is not None)
    with served("ask_first", protocol, chunk=chunk) as port, pytest.MonkeyPatch.context() as patch:
        for module in ("openpi", "vla_eval"):
            patch.setattr(f"conflictvla.eval.policies.remote.{module}.read_refusal", lambda answer, url: None)
        policy = load_policy(f"{protocol}://127.0.0.1:{port}?image_size=64&gripper=as_is")
        rollout = _rollout(policy, conflict, scenes, init_state=0)
    assert rollout.episode.end == "horizon"
    np.testing.assert_array_equal(rollout.frames["action"], np.zeros((10, 7)))


def test_a_client_out_of_step_gets_an_error(instances: tuple[Instance, ...], scenes: ScenePool) -> None:
    with served("persist", "openpi", chunk=CHUNK) as port:
        policy = load_policy(f"openpi://127.0.0.1:{port}?replan_steps=3&image_size=64")
        with pytest.raises(PolicyError, match=r"the server raised .*the client must execute each chunk to its end"):
            _rollout(policy, instances[0], scenes, init_state=0)


@pytest.mark.parametrize(("protocol", "path", "body"), [("openpi", "healthz", "OK"), ("vla-eval", "health", "ok")])
def test_health_is_reported_where_the_protocol_has_it(protocol: ServedProtocol, path: str, body: str) -> None:
    with (
        served("persist", protocol) as port,
        urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}") as answer,
    ):
        assert body in answer.read().decode()


def test_a_port_in_use_is_named() -> None:
    with served("persist", "openpi") as port, pytest.raises(InvalidInputError, match="Address already in use"):
        PolicyServer(lambda: Twin(load_policy("persist"), ()), protocol="openpi", name="x", port=port)


def test_vla_evals_real_client_is_served(instances: tuple[Instance, ...], scenes: ScenePool) -> None:
    """Its own connection, driving our scene as its benchmark drives LIBERO's."""
    reference = instances[0]
    scene = scenes.scene(reference.suite, TASK)
    expected = _rollout(load_policy("persist"), reference, scenes, init_state=1).frames["action"][:3]
    scene.reset(1)

    async def talk(port: int) -> tuple[list[np.ndarray[Any, Any]], str]:
        async with Connection(f"ws://127.0.0.1:{port}") as connection:
            assert connection.server_info["observation_params"]["send_state"] is True
            task = {"name": reference.instruction, "suite": reference.suite, "task_id": reference.base_task_index}
            await connection.start_episode({"task": {**task, "episode_idx": 1}})
            actions = []
            for step in range(3):
                observation: VlaEvalObservation = {
                    "images": {"agentview": np.zeros((8, 8, 3), dtype=np.uint8)},
                    "task_description": reference.prompt_text,
                    "states": observe(scene, step).state,
                }
                action = await connection.act(observation)
                actions.append(action["actions"])
                scene.step(action["actions"])
            with pytest.raises(RuntimeError) as caught:
                await connection.act({"task_description": "no such prompt", "states": np.zeros(8)})
            await connection.end_episode({})
            return actions, str(caught.value)

    with served("persist", "vla-eval") as port:
        actions, message = anyio.run(talk, port)
    assert [(action.shape, action.dtype.name) for action in actions] == [((7,), "float32")] * 3
    np.testing.assert_array_equal(actions, expected)
    assert "observation_failed: NotFoundError: no instance has the prompt 'no such prompt'" in message


@pytest.mark.slow
def test_openpis_real_client_is_served_and_packs_what_was_recorded(
    new_venv: Callable[..., Path], instances: tuple[Instance, ...], scenes: ScenePool
) -> None:
    """It needs NumPy 1, hence an environment of its own."""
    # It forgets to require typing-extensions.
    python = new_venv("openpi-client==0.1.2", "typing-extensions", constrained=False)
    script = Path(__file__).parents[1] / "remote" / "openpi_real_client.py"

    def real(*arguments: str) -> str:
        return subprocess.run([python, script, *arguments], check=True, capture_output=True, text=True).stdout

    assert json.loads(real("pack")) == json.loads(script.with_name("openpi_wire.json").read_text())
    scene = scenes.scene("libero_goal", TASK)
    expected = _rollout(load_policy("persist"), instances[0], scenes, init_state=4).frames["action"][:CHUNK]
    scene.reset(4)
    state = json.dumps(observe(scene, 0).state.tolist())
    with served("persist", "openpi", chunk=CHUNK) as port:
        done = json.loads(real(str(port), state, instances[0].instruction))
    assert done["metadata"] == {"policy": "persist"}
    np.testing.assert_array_equal(np.array(done["actions"], dtype=np.float32), expected)
    assert done["timing"] == ["infer_ms"]
    assert done["message"].splitlines()[0] == "Error in inference server:"
    assert "NotFoundError: no instance has the prompt 'no such prompt'" in done["message"].splitlines()[-1]
