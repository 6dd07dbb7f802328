"""A time limit on a policy's answers: one that hangs must not hang the run."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

from ...toolkit.arrays import FloatArray
from ...toolkit.errors import PolicyError, UnavailablePolicyError
from .interface import Episode, Observation, Policy, PolicyInfo, Refusal


class TimedPolicy:
    """Asks a policy on a thread of its own and waits no longer than a limit.

    A policy that has hung once is not asked again, since its thread is still blocked.

    Args:
        policy: The policy.
        limit_s: Longest time for an answer, in s; loading a model in the first ``reset`` counts too.
    """

    def __init__(self, policy: Policy, limit_s: float) -> None:
        self.info: PolicyInfo = policy.info
        self.hung = False
        self._policy, self._limit_s = policy, limit_s
        self._calls: queue.SimpleQueue[Callable[[], Any]] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        # A daemon: a thread that hangs forever must not stop the interpreter from ending.
        threading.Thread(target=self._serve, daemon=True).start()

    def reset(self, episode: Episode) -> None:
        """Begin an episode.

        Raises:
            UnavailablePolicyError: The policy did not answer in time.
        """
        self._within_limit(lambda: self._policy.reset(episode))

    def act(self, observation: Observation) -> FloatArray | Refusal:
        """Next actions, or a refusal.

        Raises:
            UnavailablePolicyError: The policy did not answer in time.
        """
        answer: FloatArray | Refusal = self._within_limit(lambda: self._policy.act(observation))
        return answer

    def _within_limit(self, call: Callable[[], Any]) -> Any:
        if self.hung:
            raise PolicyError("it did not answer before, and is not asked again")
        self._calls.put(call)
        try:
            answer, error = self._answers.get(timeout=self._limit_s)
        except queue.Empty:
            self.hung = True
            raise UnavailablePolicyError(f"it did not answer within {self._limit_s:g} s") from None
        if error is not None:
            raise error
        return answer

    def _serve(self) -> None:
        while not self.hung:
            call = self._calls.get()
            try:
                answer, error = call(), None
            except BaseException as raised:  # whatever it is, it belongs to the thread that asked
                answer, error = None, raised
            self._answers.put((answer, error))
