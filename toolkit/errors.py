"""Errors that users meet: one line with what is wrong, where, and what to do next."""

from __future__ import annotations


class ConflictVLAError(Exception):
    """Root of every error this package raises on purpose; the command line prints it as one line and exits with 2."""


class InvalidInputError(ConflictVLAError, ValueError):
    """A value, name or file that the caller gave cannot be used."""


class NotFoundError(ConflictVLAError, LookupError):
    """A name that the caller gave does not exist; the message lists what does."""


class MissingExtraError(ConflictVLAError, ImportError):
    """An optional stack is needed and not installed.

    Args:
        what: What the caller was doing, as a noun phrase, such as "running rollouts".
        extra: The name of the optional dependency group that brings it.
        missing: The module that could not be imported.
    """

    def __init__(self, what: str, extra: str, missing: str) -> None:
        super().__init__(f"{what} needs the package '{missing}': install it with  pip install 'conflictvla[{extra}]'")


class DatasetError(ConflictVLAError, ValueError):
    """A dataset on disk is damaged, incomplete or of the wrong kind; the message names file, row and field."""


class HubError(ConflictVLAError, RuntimeError):
    """The Hugging Face Hub refused what was asked, or cannot be reached."""


class PolicyError(ConflictVLAError, RuntimeError):
    """A policy raised, or returned actions that cannot be executed."""


class UnavailablePolicyError(PolicyError):
    """A policy did not answer: its server is gone, or a time limit has passed.

    The rollout may succeed if it is tried again from its start.
    """


def first_line(error: BaseException) -> str:
    """The first line of an error's text, for a message of one line; the name of its type where it has no text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip()


def describe_error(error: BaseException) -> str:
    """The type of an error and the first line of its text, such as ``ValueError: no such view``."""
    name, line = type(error).__name__, first_line(error)
    return name if line == name else f"{name}: {line}"


MOST_NAMED = 50
"""Names that a message lists: all of any kind of our own, such as tables or policies; not those of all rollouts."""


def choices(given: str, known: list[str]) -> str:
    """Name the known choices after a wrong one, the closest first.

    Args:
        given: What the caller wrote.
        known: All valid names.

    Returns:
        A clause for the end of an error message, such as ``did you mean 'persist'? (known: fail_persist, persist)``.
    """
    import difflib

    close = difflib.get_close_matches(given, known, n=1)
    hint = f"did you mean '{close[0]}'? " if close else ""
    more = f" and {len(known) - MOST_NAMED:,} more" if len(known) > MOST_NAMED else ""
    shown = ", ".join(known[:MOST_NAMED]) + more
    return f"{hint}(known: {shown})"
