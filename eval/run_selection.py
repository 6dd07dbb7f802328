"""What a run consists of: the full evaluation, or a named part of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..builders.cases.instances import under_prompts
from ..builders.tasks_dataset.reading import check_has_controls, load_instances, load_lite_cases
from ..toolkit.errors import InvalidInputError
from ..toolkit.prompts import PromptCondition
from ..toolkit.records import Arm, Instance, LanguageProbe
from .rollouts.run import with_references
from .selection import choose_prompts, select_conflicts

FULL_INIT_STATES = tuple(range(5))
"""Initial states of a full evaluation, by LIBERO's numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSelection:
    """Which instances are run; without any choice those of the full evaluation.

    Attributes:
        cases: Patterns of case ids as for ``select_conflicts``; None for all.
        prompts: Names of prompt conditions; by default P0, P1 and the user's own.
        own_prompts: Prompt conditions of the user's own.
        language: Language probes.
        lite: Only cases of the lite selection.
        controls: The controls of the cases too.
        references_only: The references of the cases without the cases.
        tasks: Folder of another task release; None for the packaged one.
    """

    cases: str | None = None
    prompts: Sequence[str] | None = None
    own_prompts: Sequence[PromptCondition] = ()
    language: tuple[LanguageProbe, ...] = (LanguageProbe.W0,)
    lite: bool = False
    controls: bool = False
    references_only: bool = False
    tasks: Path | None = None

    def instances(self) -> tuple[Instance, ...]:
        """The instances, each base task's after its references.

        Raises:
            InvalidInputError: The choices exclude each other, or leave nothing.
            NotFoundError: A pattern fits no case, or there is no such prompt condition.
            DatasetError: The folder is no task release, or has no lite selection, controls or probes.
        """
        if self.references_only and self.controls:
            raise InvalidInputError("--references-only leaves out what --controls adds: give one of them")
        conditions = choose_prompts(self.prompts, self.own_prompts)
        everything = under_prompts(load_instances(self.tasks, self.language), conditions)
        conflicts = select_conflicts(everything, self.cases, None)
        if self.lite:
            lite = load_lite_cases(self.tasks)
            conflicts = tuple(instance for instance in conflicts if instance.case_id in lite)
            if not conflicts:
                raise InvalidInputError("nothing to run: the lite selection has none of --cases; leave one of them out")
        if self.references_only:
            return self._references(everything, conflicts)
        if not conflicts:
            raise InvalidInputError("nothing to run: these tasks have no cases; --references-only runs what they have")
        return with_references((*conflicts, *self._controls_of(conflicts, everything)), everything)

    def _references(self, everything: Iterable[Instance], conflicts: Iterable[Instance]) -> tuple[Instance, ...]:
        """The references of these cases; with no choice of cases those of every base task."""
        wanted = {conflict.pair_id for conflict in conflicts} if self.lite or self.cases is not None else None
        references = (instance for instance in everything if instance.arm is Arm.REFERENCE)
        return tuple(instance for instance in references if wanted is None or instance.instance_id in wanted)

    def _controls_of(self, conflicts: Iterable[Instance], everything: Iterable[Instance]) -> tuple[Instance, ...]:
        if not self.controls:
            return ()
        check_has_controls(self.tasks)
        chosen = {(conflict.case_id, conflict.prompt) for conflict in conflicts}
        controls = (instance for instance in everything if instance.arm is Arm.CONTROL)
        return tuple(control for control in controls if (control.case_id, control.prompt) in chosen)
