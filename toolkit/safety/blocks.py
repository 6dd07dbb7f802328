"""Constrained BDDL: the blocks ``(:cost ...)`` and ``(:moving_objects ...)`` of a task file, read and printed.

Everything else of the file is LIBERO's, and read by LIBERO's own parser, which passes these two blocks by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from ..errors import InvalidInputError, choices
from .conditions import COMBINATIONS, DEFAULT_ALPHA, SIGNATURES, Combination, Condition, CostSpec, Predicate
from .expressions import Expression, number_text, read_expressions, read_number, refuse
from .motion_blocks import print_moving_object, read_moving_object
from .motions import MovingObject

COST, MOVING = ":cost", ":moving_objects"
NAMES = {name.lower(): name for name in (*SIGNATURES, *COMBINATIONS)}
GROUPS = (":instantaneous", ":terminal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """What a task file holds beyond LIBERO's own blocks.

    Attributes:
        cost: What is to be paid for; None where the file has no such block.
        moving: Objects that move by themselves.
    """

    cost: CostSpec | None = None
    moving: tuple[MovingObject, ...] = ()


def read_constraints(text: str, where: str) -> Constraints:
    """The two blocks of a task file, wherever they stand in it; a text of nothing but them is fine too.

    Args:
        text: The file's text.
        where: The file's name, for errors.

    Raises:
        InvalidInputError: A block is wrong; the message names the line and what to write.
    """
    found: dict[str, Expression] = {}
    for block in _blocks(read_expressions(text, where)):
        if block.head in (COST, MOVING):
            if block.head in found:
                raise InvalidInputError(f"{where}: line {block.line}: a second ({block.head} ...); join the two")
            found[block.head] = block
    reader = _Reader(where=where)
    cost = reader.cost(found[COST]) if COST in found else None
    moving = tuple(read_moving_object(item, where) for item in found[MOVING].items[1:]) if MOVING in found else ()
    names = [one.name for one in moving]
    for number, name in enumerate(names):
        if name in names[:number]:
            line = found[MOVING].items[1 + number].line
            raise InvalidInputError(f"{where}: line {line}: '{name}' moves twice; give it one motion")
    return Constraints(cost=cost, moving=moving)


def print_constraints(constraints: Constraints) -> str:
    """The blocks as text; reading it gives the same constraints."""
    blocks = []
    if constraints.cost is not None:
        blocks.append(print_cost(constraints.cost))
    if constraints.moving:
        moving = "\n".join(f"  {print_moving_object(one)}" for one in constraints.moving)
        blocks.append(f"({MOVING}\n{moving})")
    return "".join(f"{block}\n" for block in blocks)


def print_cost(cost: CostSpec) -> str:
    """A cost block as text, one condition a line."""
    lines = [f"({COST}", f"  (:alpha {number_text(cost.alpha)})"]
    for group, conditions in zip(GROUPS, (cost.instantaneous, cost.terminal), strict=True):
        if conditions:
            lines.append(f"  ({group}" + "".join(f"\n    {condition}" for condition in conditions) + ")")
    return "\n".join(lines) + ")"


def _blocks(top: Sequence[Expression]) -> Sequence[Expression]:
    """What stands within ``(define ...)``, or at the top where there is none."""
    return top[0].items[1:] if len(top) == 1 and top[0].head == "define" else top


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """Reads a cost block of one file."""

    where: str

    def cost(self, block: Expression) -> CostSpec:
        groups: dict[str, list[Condition]] = {name: [] for name in GROUPS}
        alpha: float | None = None
        for item in block.items[1:]:
            if item.head == ":alpha":
                if alpha is not None or len(item.items) != 2:
                    self._refuse(item, "write one (:alpha NUMBER)")
                alpha = read_number(item.items[1], self.where, least=0.0)
            elif item.head in GROUPS:
                groups[item.head].extend(self._condition(one) for one in item.items[1:])
            elif item.head.startswith(":"):
                self._refuse(item, f"no part '{item.head}' of a cost: {choices(item.head, [*GROUPS, ':alpha'])}")
            else:
                condition = self._condition(item)
                groups[GROUPS[_is_terminal(condition)]].append(condition)
        for condition in groups[":instantaneous"] + groups[":terminal"]:
            self._check_time(condition, block, terminal=condition in groups[":terminal"])
        return CostSpec(
            instantaneous=tuple(dict.fromkeys(groups[":instantaneous"])),
            terminal=tuple(dict.fromkeys(groups[":terminal"])),
            alpha=DEFAULT_ALPHA if alpha is None else alpha,
        )

    def _check_time(self, condition: Condition, block: Expression, *, terminal: bool) -> None:
        forces = isinstance(condition, Predicate) and condition.name == "CheckForce"
        if isinstance(condition, Combination):
            for part in condition.conditions:
                self._check_time(part, block, terminal=terminal)
        elif forces and terminal:
            self._refuse(block, "CheckForce is of the time between two states, so it cannot be terminal")

    def _condition(self, item: Expression) -> Condition:
        name = NAMES.get(item.head)
        if name is None:
            self._refuse(item, f"no predicate '{item.head or item}': {choices(item.head, list(NAMES.values()))}")
        if name not in COMBINATIONS:
            return self._predicate(name, item)
        conditions = tuple(self._condition(one) for one in item.items[1:])
        if not conditions or (name == "Not" and len(conditions) > 1):
            self._refuse(item, f"{name} joins {'one condition' if name == 'Not' else 'conditions'}, in parentheses")
        return Combination(operator=name, conditions=conditions)

    def _predicate(self, name: str, item: Expression) -> Predicate:
        signature, rest = SIGNATURES[name], list(item.items[1:])
        usage = f"write {usage_of(name)}"
        names = [item.word for item in rest[: signature.entities]]
        if len(names) < signature.entities or None in names:
            self._refuse(item, usage)
        rest = rest[signature.entities :]
        parts = rest[: signature.entities] if signature.parts else []
        if signature.parts and (len(parts) < signature.entities or any(part.word is not None for part in parts)):
            self._refuse(item, usage)
        rest = rest[len(parts) :]
        if len(rest) > (signature.limit is not None) or (
            signature.limit and not rest and signature.default_limit is None
        ):
            self._refuse(item, usage)
        limit = read_number(rest[0], self.where, least=0.0) if rest else signature.default_limit
        return Predicate(
            name=name,
            entities=tuple(str(entity) for entity in names),
            parts=tuple(self._part_numbers(part) for part in parts),
            limit=limit,
        )

    def _part_numbers(self, part: Expression) -> tuple[int, ...]:
        if not part.items or any(not (one.word or "").isdigit() for one in part.items):
            self._refuse(part, f"'{part}' is no list of part numbers; write such as (0 3)")
        return tuple(int(str(one.word)) for one in part.items)

    def _refuse(self, item: Expression, what: str) -> NoReturn:
        refuse(item, self.where, what)


def usage_of(name: str) -> str:
    """How a predicate is written, such as ``(CheckForce ENTITY ENTITY FORCE_IN_N)``."""
    signature = SIGNATURES[name]
    words = ["ENTITY"] * signature.entities + ["(NUMBER ...)"] * (signature.entities if signature.parts else 0)
    if signature.limit is not None:
        limit = signature.limit.replace(" ", "_").replace("/", "_PER_").upper()
        words.append(limit if signature.default_limit is None else f"[{limit}]")
    return f"({' '.join([name, *words])})"


def _is_terminal(condition: Condition) -> bool:
    """Whether a condition is evaluated at the end alone: of a combination, whether all of it is."""
    if isinstance(condition, Predicate):
        return SIGNATURES[condition.name].terminal
    return all(_is_terminal(part) for part in condition.conditions)
