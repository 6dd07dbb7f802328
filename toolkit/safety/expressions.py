"""S-expressions with line numbers, which LIBERO's own tokenizer lacks: errors in task files can name their lines."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import NoReturn

from ..errors import InvalidInputError

TOKEN = re.compile(r"[()]|[^\s()]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A word, or a list of expressions.

    Attributes:
        line: Line of the text that it begins in, from 1.
        word: The word, in lower case as LIBERO reads it; None for a list.
        items: What a list holds.
    """

    line: int
    word: str | None = None
    items: tuple[Expression, ...] = ()

    @property
    def head(self) -> str:
        """First word of a list, such as ``:cost``; empty where it does not begin with one."""
        return (self.items[0].word or "") if self.items else ""

    def __str__(self) -> str:
        return self.word if self.word is not None else f"({' '.join(map(str, self.items))})"


def read_expressions(text: str, where: str) -> tuple[Expression, ...]:
    """The expressions of a text, without its comments, which run from ``;`` to the end of a line.

    Args:
        text: The text.
        where: What to call it in errors, such as its file.

    Raises:
        InvalidInputError: A parenthesis has no partner; the message names its line.
    """
    open_lists: list[tuple[int, list[Expression]]] = [(1, [])]
    for number, line in enumerate(text.splitlines(), 1):
        for token in TOKEN.findall(line.partition(";")[0]):
            if token == "(":
                open_lists.append((number, []))
            elif token == ")":
                if len(open_lists) == 1:
                    raise InvalidInputError(f"{where}: line {number}: ')' closes nothing")
                began, items = open_lists.pop()
                open_lists[-1][1].append(Expression(line=began, items=tuple(items)))
            else:
                open_lists[-1][1].append(Expression(line=number, word=token.lower()))
    if len(open_lists) > 1:
        raise InvalidInputError(f"{where}: line {open_lists[-1][0]}: '(' is never closed")
    return tuple(open_lists[0][1])


def refuse(item: Expression, where: str, what: str) -> NoReturn:
    """Refuse an expression: what is wrong with it, and where it stands.

    Raises:
        InvalidInputError: Always.
    """
    raise InvalidInputError(f"{where}: line {item.line}: {what}")


def read_number(item: Expression, where: str, *, least: float = -math.inf) -> float:
    """A finite number, not below ``least``.

    Raises:
        InvalidInputError: It is something else.
    """
    try:
        number = float(item.word or "")
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < least:
        bound = "" if math.isinf(least) else f" of at least {number_text(least)}"
        refuse(item, where, f"'{item}' is no number{bound}")
    return number


def number_text(number: float) -> str:
    """A number as short as it can be read back exactly."""
    return repr(float(number)).removesuffix(".0")
