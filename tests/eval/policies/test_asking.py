"""What a policy may answer, and the one line that anything else becomes."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from conflictvla.eval.policies.asking import ask, begin_episode
from conflictvla.eval.policies.interface import Episode, Observation, PolicyInfo, Refusal
from conflictvla.eval.policies.timed import TimedPolicy
from conflictvla.toolkit.errors import PolicyError

SEEN = Observation(
    step=0,
    eef_pos_m=np.zeros(3),
    eef_quat_wxyz=np.zeros(4),
    joint_pos_rad=np.zeros(7),
    gripper_pos_m=np.zeros(2),
    state=np.zeros(8),
    camera=lambda camera, size: np.zeros((size, size, 3), np.uint8),
)


@dataclass
class Answers:
    """Answers as given."""

    answer: Any
    info: PolicyInfo = field(default_factory=lambda: PolicyInfo(name="answers", revision="1"))

    def reset(self, episode: Episode) -> None:
        pass

    def act(self, observation: Observation) -> Any:
        return self.answer


@pytest.mark.parametrize("kind", ["refusal", "question"])
def test_a_refusal_arrives_with_its_kind_in_one_clean_line(kind: str) -> None:
    given = Refusal("\tThere is no mug;\r\n which\x1b[31m cup\u202e? ", kind)
    assert ask(Answers(given), SEEN) == Refusal("There is no mug; which [31m cup ?", kind)
    assert ask(TimedPolicy(Answers(given), 5.0), SEEN) == Refusal("There is no mug; which [31m cup ?", kind)


def test_a_refusal_without_a_kind_is_a_refusal() -> None:
    assert ask(Answers(Refusal("Nein, das gibt es hier nicht – 没有杯子。")), SEEN) == Refusal(
        "Nein, das gibt es hier nicht – 没有杯子。", "refusal"
    )


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Refusal("no", "shrug"), "r: step 0: a refusal of kind 'shrug'; the kind is refusal or question"),
        (Refusal("no", ["refusal"]), "a refusal of kind ['refusal']"),  # type: ignore[arg-type]  # wrong on purpose
        (Refusal(b"no"), "the text of the refusal is bytes, not text"),  # type: ignore[arg-type]  # wrong on purpose
        (Refusal("", "question"), "the question has no text; say why, or what is asked"),
        (Refusal(" \n\x00 "), "the refusal has no text"),
        (Refusal("n" * 2001), "the refusal has 2001 characters; at most 2000 are recorded"),
        ("I would rather not", "the actions are not numbers"),
        (None, "the actions have shape ()"),
        ({"refusal": {"kind": "refusal", "text": "no"}}, "the actions are not numbers"),
    ],
)
def test_what_is_neither_actions_nor_a_refusal_is_one_line(answer: object, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        ask(Answers(answer), SEEN, where="r: step 0")
    assert message in str(caught.value)
    assert str(caught.value).startswith("r: step 0: ")
    assert "\n" not in str(caught.value)


@dataclass
class Leaves(Answers):
    """Ends the interpreter, as a library that parses its own command line does."""

    where: str = "act"

    def reset(self, episode: Episode) -> None:
        if self.where == "reset":
            raise SystemExit(2)

    def act(self, observation: Observation) -> Any:
        sys.exit("no weights")


@pytest.mark.parametrize("limit_s", [None, 5.0])
def test_a_policy_that_leaves_ends_its_rollout_alone(limit_s: float | None) -> None:
    given = Leaves(None)
    policy = given if limit_s is None else TimedPolicy(given, limit_s)
    with pytest.raises(PolicyError, match="r: the policy raised: SystemExit: no weights"):
        ask(policy, SEEN, where="r")


def test_a_policy_that_leaves_in_reset_ends_its_rollout_alone() -> None:
    episode: Any = None  # the policy does not look at it
    with pytest.raises(PolicyError, match="r: the policy raised in reset: SystemExit: 2"):
        begin_episode(Leaves(None, where="reset"), episode, where="r")
