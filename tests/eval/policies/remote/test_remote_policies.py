"""Clients of policy servers over real sockets: what they send, and one clear line for whatever a server does."""

from __future__ import annotations

import dataclasses
import http.server
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.policies.conventions import turned
from conflictvla.eval.policies.interface import Episode, Observation, Policy, Refusal
from conflictvla.eval.policies.observing import observe
from conflictvla.eval.policies.registry import load_policy
from conflictvla.eval.policies.remote.wire import pack_openpi, unpack_openpi
from conflictvla.toolkit.arrays import FloatArray
from conflictvla.toolkit.errors import ConflictVLAError, InvalidInputError, NotFoundError, PolicyError
from conflictvla.toolkit.libero.base_tasks import base_task
from conflictvla.toolkit.records import Arm
from conflictvla.toolkit.simulation.scene import Scene

from .policy_servers import CHUNK, Model, WholeReply, answers, drops, openpi_server, raises, sleeps, vla_eval_server

PROMPT = "turn on the stove"


@pytest.fixture(scope="module")
def scene() -> Scene:
    found = Scene(base_task("libero_goal", "turn_on_the_stove"))
    found.reset(2)
    return found


@pytest.fixture(scope="module")
def episode(scene: Scene) -> Episode:
    instance = next(i for i in load_instances() if i.base_task == scene.task.name and i.arm is Arm.REFERENCE)
    return Episode(instruction=PROMPT, init_state=2, seed=0, instance=instance, scene=scene)


@pytest.fixture(scope="module")
def seen(scene: Scene) -> Observation:
    """A real state; the pictures are noise, which shows turning and mixing up better."""
    views = {
        camera: np.random.default_rng(number).integers(256, size=(256, 256, 3), dtype=np.uint8)
        for number, camera in enumerate(("agentview", "robot0_eye_in_hand"))
    }
    return dataclasses.replace(observe(scene, 0), camera=lambda camera, size: views[camera])


def _asked(policy: Policy, episode: Episode, seen: Observation) -> FloatArray:
    policy.reset(episode)
    return _next(policy, seen)


def _next(policy: Policy, seen: Observation) -> FloatArray:
    answer = policy.act(seen)
    assert not isinstance(answer, Refusal)
    return answer


# openpi


def test_openpi_gets_what_its_own_client_sends(episode: Episode, seen: Observation) -> None:
    questions: list[Any] = []

    def answer(connection: Any, question: bytes) -> None:
        questions.append(unpack_openpi(question))
        connection.send(pack_openpi({"actions": CHUNK, "server_timing": {"infer_ms": 1.0}}))

    with openpi_server(answer) as port:
        policy = load_policy(f"openpi://127.0.0.1:{port}")
        actions = _asked(policy, episode, seen)
    np.testing.assert_array_equal(actions, CHUNK[:5])  # openpi's client replans every 5 steps
    (question,) = questions
    assert list(question) == ["observation/image", "observation/wrist_image", "observation/state", "prompt"]
    assert question["prompt"] == PROMPT
    assert question["observation/image"].shape == question["observation/wrist_image"].shape == (224, 224, 3)
    np.testing.assert_array_equal(question["observation/state"], seen.state)
    assert (policy.info.name, policy.info.revision) == ("openpi", "unstated")
    assert policy.info.settings["server_model"] == "tiny"


def test_settings_of_the_spec_reach_question_and_record(episode: Episode, seen: Observation) -> None:
    questions: list[Any] = []

    def answer(connection: Any, question: bytes) -> None:
        questions.append(unpack_openpi(question))
        connection.send(pack_openpi({"actions": CHUNK}))

    settings = "image_size=256&images=upright&gripper=flip&replan_steps=10&name=pi05&revision=abc&axis_angle=shortest"
    with openpi_server(answer) as port:
        policy = load_policy(f"openpi://127.0.0.1:{port}?{settings}")
        actions = _asked(policy, episode, seen)
    assert actions.shape == (10, 7)
    np.testing.assert_array_equal(actions[:, 6], 1.0)
    np.testing.assert_array_equal(questions[0]["observation/image"], seen.image())
    assert np.linalg.norm(questions[0]["observation/state"][3:6]) <= np.pi
    assert (policy.info.name, policy.info.revision) == ("pi05", "abc")
    assert policy.info.settings["replan_steps"] == 10


def test_a_connection_that_breaks_is_made_again_and_the_question_repeated(episode: Episode, seen: Observation) -> None:
    asked = 0

    def breaks_twice(connection: Any, question: bytes) -> None:
        nonlocal asked
        asked += 1
        (drops if asked in (1, 2) else answers(CHUNK))(connection, question)

    with openpi_server(breaks_twice) as port:
        actions = _asked(load_policy(f"openpi://127.0.0.1:{port}"), episode, seen)
    assert asked == 3
    np.testing.assert_array_equal(actions, CHUNK[:5])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (raises, r"the server raised KeyError: 'observation/wrist_image'$"),
        (drops, r"the connection was lost"),
        (answers(CHUNK[:, :6]), r"the actions have shape \(10, 6\); return \(n, 7\) with n >= 1$"),
        (answers(CHUNK[np.newaxis]), r"the actions have shape \(1, 10, 7\)"),
        (answers(CHUNK[:3]), r"3 actions in a chunk, and replan_steps=5 executes more; give \?replan_steps=3$"),
        (answers(CHUNK[:0]), r"the actions have shape \(0, 7\)"),
        (answers("left"), r"the actions are not numbers"),
        (lambda connection, question: connection.send(pack_openpi({"error": 1})), r"the answer holds no actions$"),
        (lambda connection, question: connection.send(b"\xc1"), r"not a message of openpi's protocol"),
    ],
    ids=["traceback", "dies", "width", "batch", "short chunk", "no action", "text", "no actions", "garbage"],
)
def test_whatever_an_openpi_server_does_is_one_line(
    answer: Callable[[Any, bytes], None], message: str, episode: Episode, seen: Observation
) -> None:
    with openpi_server(answer) as port:
        policy = load_policy(f"openpi://127.0.0.1:{port}")
        with pytest.raises(PolicyError, match=message) as caught:
            _asked(policy, episode, seen)
    assert str(caught.value).startswith(f"ws://127.0.0.1:{port}: ")
    assert "\n" not in str(caught.value)


def test_after_a_traceback_the_next_episode_begins_on_a_new_connection(episode: Episode, seen: Observation) -> None:
    asked = 0

    def raises_once(connection: Any, question: bytes) -> None:
        nonlocal asked
        asked += 1
        (raises if asked == 1 else answers(CHUNK))(connection, question)

    with openpi_server(raises_once) as port:
        policy = load_policy(f"openpi://127.0.0.1:{port}")
        with pytest.raises(PolicyError):
            _asked(policy, episode, seen)
        np.testing.assert_array_equal(_asked(policy, episode, seen), CHUNK[:5])


def test_a_server_that_is_too_slow_is_given_up(episode: Episode, seen: Observation) -> None:
    with openpi_server(sleeps) as port:
        policy = load_policy(f"openpi://127.0.0.1:{port}?answer_s=1")
        with pytest.raises(PolicyError, match=r"no answer within 1 s; for a slower server give \?answer_s=SECONDS"):
            _asked(policy, episode, seen)


def test_an_openpi_server_that_greets_with_text_is_none(episode: Episode, seen: Observation) -> None:
    with (
        openpi_server(raises, greeting=pack_openpi([1])) as port,
        pytest.raises(PolicyError, match="not a server of openpi's"),
    ):
        load_policy(f"openpi://127.0.0.1:{port}")


# vla-eval, against its real server


def test_vla_eval_gets_what_its_own_benchmark_sends(episode: Episode, seen: Observation) -> None:
    model = Model(lambda obs: CHUNK[0], wishes={"send_wrist_image": True, "send_state": True})
    with vla_eval_server(model) as port:
        policy = load_policy(f"vla-eval://127.0.0.1:{port}")
        actions = _asked(policy, episode, seen)
    np.testing.assert_allclose(actions, CHUNK[:1], atol=1e-7)
    task = {"name": PROMPT, "suite": "libero_goal", "task_id": 7, "episode_idx": 2}
    assert model.episodes == [{"task": task}]
    (question,) = model.asked
    assert list(question) == ["images", "task_description", "states", "controller_states"]
    assert question["task_description"] == PROMPT
    np.testing.assert_array_equal(question["images"]["agentview"], turned(seen.image(), "rotated"))
    np.testing.assert_array_equal(question["images"]["wrist"], turned(seen.image("robot0_eye_in_hand"), "rotated"))
    np.testing.assert_allclose(question["states"][[0, 1, 2, 6, 7]], seen.state[[0, 1, 2, 6, 7]], atol=1e-12)
    assert np.linalg.norm(question["states"][3:6]) <= np.pi  # vla-eval's default
    assert question["controller_states"].dtype == np.float32
    assert policy.info.settings["server_model_server"] == "Model"


def test_the_controllers_state_is_liberos_own(episode: Episode, seen: Observation) -> None:
    """The stock controller, updated in the same simulator state, reports where it takes the hand to be."""
    from vla_eval.rotation import matrix_to_quat, quat_to_axisangle

    model = Model(lambda obs: CHUNK[0], wishes={"send_state": True})
    with vla_eval_server(model) as port:
        _asked(load_policy(f"vla-eval://127.0.0.1:{port}"), episode, seen)
    stock = episode.scene.libero.robots[0].controller
    stock.update(force=True)
    rotation = quat_to_axisangle(matrix_to_quat(stock.ee_ori_mat))
    found = model.asked[0]["controller_states"]
    np.testing.assert_allclose(found, [*stock.ee_pos, *rotation, *seen.gripper_pos_m], atol=2e-6)
    assert np.abs(found[3:6] - model.asked[0]["states"][3:6]).max() > 0.5  # not the observation's orientation


def test_a_server_that_wants_less_gets_less_and_its_rotation_rule_is_followed(
    episode: Episode, seen: Observation
) -> None:
    little = Model(lambda obs: CHUNK[0])
    with vla_eval_server(little) as port:
        _asked(load_policy(f"vla-eval://127.0.0.1:{port}"), episode, seen)
    assert list(little.asked[0]) == ["images", "task_description"]
    assert list(little.asked[0]["images"]) == ["agentview"]
    long = Model(lambda obs: CHUNK[0], wishes={"send_state": True, "quat_no_antipodal": True})
    with vla_eval_server(long) as port:
        _asked(load_policy(f"vla-eval://127.0.0.1:{port}"), episode, seen)
    np.testing.assert_allclose(long.asked[0]["states"], seen.state, atol=1e-6)


def test_a_chunk_that_the_server_buffers_is_handed_out_step_by_step(episode: Episode, seen: Observation) -> None:
    chunk = np.arange(28.0).reshape(4, 7) / 100.0
    model = Model(lambda obs: chunk, chunk=4)
    with vla_eval_server(model) as port:
        policy = load_policy(f"vla-eval://127.0.0.1:{port}?gripper=as_is")
        policy.reset(episode)
        answers = [_next(policy, seen) for _ in range(5)]
        assert [answer.shape for answer in answers] == [(1, 7)] * 5
        np.testing.assert_allclose(np.concatenate(answers[:4]), chunk, atol=1e-7)
        assert len(model.asked) == 2
        policy.reset(episode)  # and an episode that begins empties the buffer
        np.testing.assert_allclose(_next(policy, seen), chunk[:1], atol=1e-7)
    assert len(model.episodes) == 2
    assert model.ended >= 1


def test_a_chunk_that_the_server_hands_out_whole_is_executed_up_to_the_replan_steps(
    episode: Episode, seen: Observation
) -> None:
    with vla_eval_server(Model(lambda obs: CHUNK)) as port:
        assert _asked(load_policy(f"vla-eval://127.0.0.1:{port}"), episode, seen).shape == (10, 7)
        assert _asked(load_policy(f"vla-eval://127.0.0.1:{port}?replan_steps=4"), episode, seen).shape == (4, 7)


def test_the_gripper_is_snapped_as_vla_eval_snaps_it(episode: Episode, seen: Observation) -> None:
    with vla_eval_server(Model(lambda obs: np.array([0, 0, 0, 0, 0, 0, 0.2]))) as port:
        assert _asked(load_policy(f"vla-eval://127.0.0.1:{port}"), episode, seen)[0, 6] == 1.0


def _refuses(obs: dict[str, Any]) -> Any:
    raise ValueError("I would rather not\nand have my reasons")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (_refuses, r"the server raised observation_failed: ValueError: I would rather not$"),
        (lambda obs: CHUNK[0, :6], r"the actions have shape \(6,\); return \(n, 7\) with n >= 1$"),
        (lambda obs: None, r"the answer holds no actions|the actions are not numbers|the actions have shape"),
    ],
    ids=["raises", "width", "none"],
)
def test_whatever_a_vla_eval_model_does_is_one_line(
    answer: Callable[[dict[str, Any]], Any], message: str, episode: Episode, seen: Observation
) -> None:
    with vla_eval_server(Model(answer)) as port:
        policy = load_policy(f"vla-eval://127.0.0.1:{port}")
        with pytest.raises(PolicyError, match=message) as caught:
            _asked(policy, episode, seen)
    assert str(caught.value).startswith(f"ws://127.0.0.1:{port}: ")
    assert "\n" not in str(caught.value)


def test_a_server_that_dies_in_an_episode_costs_that_episode_only(episode: Episode, seen: Observation) -> None:
    model = Model(lambda obs: CHUNK[0])
    with vla_eval_server(model) as port:
        policy = load_policy(f"vla-eval://127.0.0.1:{port}")
        _asked(policy, episode, seen)
    with pytest.raises(PolicyError, match=r"the connection was lost .* what the server knew of the episode"):
        policy.act(seen)
    with vla_eval_server(model, port) as again:
        assert again == port
        assert _asked(policy, episode, seen).shape == (1, 7)
    assert len(model.episodes) == 2


def test_a_slow_model_is_given_up(episode: Episode, seen: Observation) -> None:
    release = threading.Event()

    def waits(obs: dict[str, Any]) -> Any:
        release.wait(30)
        return CHUNK[0]

    with vla_eval_server(Model(waits)) as port:
        policy = load_policy(f"vla-eval://127.0.0.1:{port}?answer_s=1")
        with pytest.raises(PolicyError, match="no answer within 1 s"):
            _asked(policy, episode, seen)
        release.set()


def test_a_server_of_absolute_poses_is_refused() -> None:
    with (
        vla_eval_server(Model(lambda obs: CHUNK[0], wishes={"absolute_action": True})) as port,
        pytest.raises(PolicyError, match="only LIBERO's deltas are executed"),
    ):
        load_policy(f"vla-eval://127.0.0.1:{port}")


# either


@pytest.mark.parametrize("scheme", ["openpi", "vla-eval"])
def test_a_server_that_is_not_there_is_named_at_once(scheme: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(PolicyError, match=rf"ws://127.0.0.1:{port}: no policy server answers \(Connection refused\)"):
        load_policy(f"{scheme}://127.0.0.1:{port}?wait_s=1")


@pytest.mark.parametrize("resets", [False, True])
def test_a_server_that_ends_while_it_is_connected_to_is_waited_for(*, resets: bool) -> None:
    """It has taken the connection and closes it, or resets it, before it greets; then its successor is there."""
    ending = socket.create_server(("127.0.0.1", 0))
    port = ending.getsockname()[1]

    def end_and_come_back() -> None:
        connection, _ = ending.accept()
        if resets:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        ending.close()
        connection.close()
        with openpi_server(answers(CHUNK), port=port):
            loaded.wait(30)

    loaded = threading.Event()
    server = threading.Thread(target=end_and_come_back)
    server.start()
    try:
        assert load_policy(f"openpi://127.0.0.1:{port}?wait_s=20").info.settings["server_model"] == "tiny"
    finally:
        loaded.set()
        server.join()


@pytest.mark.parametrize("scheme", ["openpi", "vla-eval"])
def test_something_else_at_the_port_is_no_policy_server(scheme: str) -> None:
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with pytest.raises(PolicyError, match="something answers, but it is no policy server"):
            load_policy(f"{scheme}://127.0.0.1:{server.server_port}?wait_s=1")
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("openpi://127.0.0.1:1?replan=5", NotFoundError, "no setting 'replan': did you mean 'replan_steps'"),
        ("vla-eval://127.0.0.1:1?answer_s=soon&wait_s=1", InvalidInputError, "answer_s=soon is not a number"),
        ("openpi:127.0.0.1:port", InvalidInputError, "write openpi://HOST:PORT"),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused(spec: str, error: type[ConflictVLAError], message: str) -> None:
    with pytest.raises(error, match=message):
        load_policy(spec)


# refusals, over both protocols

REFUSALS: list[tuple[object, str]] = [
    ("no", """the answer's refusal is 'no', not {"kind": ..., "text": ...}"""),
    ({"text": "no"}, """the answer's refusal is {'text': 'no'}, not"""),
    ([], "the answer's refusal is [], not"),
    ({"kind": "shrug", "text": "no"}, "a refusal of kind 'shrug'; the kind is refusal or question"),
    ({"kind": 3, "text": "no"}, "a refusal of kind 3; the kind is refusal or question"),
    ({"kind": "question", "text": " \n"}, "the question has no text"),
    ({"kind": "refusal", "text": None}, "the text of the refusal is NoneType, not text"),
    ({"kind": "refusal", "text": "n" * 5000}, "the refusal has 5000 characters; at most 2000 are recorded"),
]


@contextmanager
def answering(protocol: str, reply: dict[str, Any]) -> Iterator[str]:
    """A server that gives one reply to everything; yields its address."""
    if protocol == "openpi":
        with openpi_server(lambda connection, question: connection.send(pack_openpi(reply))) as port:
            yield f"openpi://127.0.0.1:{port}"
        return
    with vla_eval_server(WholeReply(reply)) as port:
        yield f"vla-eval://127.0.0.1:{port}"


@pytest.mark.parametrize("protocol", ["openpi", "vla-eval"])
@pytest.mark.parametrize("beside", [{}, {"actions": CHUNK[0]}])
def test_a_refusal_arrives_from_a_server_with_or_without_actions(
    protocol: str, beside: dict[str, Any], episode: Episode, seen: Observation
) -> None:
    with answering(protocol, {**beside, "refusal": {"kind": "question", "text": "Which\nmug? \u676f"}}) as address:
        policy = load_policy(address)
        policy.reset(episode)
        assert policy.act(seen) == Refusal("Which mug? \u676f", "question")
        policy.reset(episode)  # and the connection goes on
        assert policy.act(seen) == Refusal("Which mug? \u676f", "question")


@pytest.mark.parametrize("protocol", ["openpi", "vla-eval"])
def test_a_server_that_does_not_refuse_answers_with_actions(protocol: str, episode: Episode, seen: Observation) -> None:
    with answering(protocol, {"actions": CHUNK[0], "refusal": None}) as address:
        assert _asked(load_policy(address), episode, seen).shape == (1, 7)


@pytest.mark.parametrize("protocol", ["openpi", "vla-eval"])
@pytest.mark.parametrize(("refusal", "message"), REFUSALS)
def test_a_refusal_that_is_none_is_one_line(
    protocol: str, refusal: object, message: str, episode: Episode, seen: Observation
) -> None:
    with answering(protocol, {"actions": CHUNK[0], "refusal": refusal}) as address:
        policy = load_policy(address)
        policy.reset(episode)
        with pytest.raises(PolicyError) as caught:
            policy.act(seen)
    assert message in str(caught.value)
    assert str(caught.value).startswith("ws://127.0.0.1:")
    assert "\n" not in str(caught.value)
