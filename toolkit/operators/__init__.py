"""Conflict operators: edits of a valid plan that make one or more of its premises false.

An operator only proposes. Whether a proposal is a conflict, of which family and with how many factors, is for
``premises.check`` to say, which knows nothing of operators.
"""

from .propose import Proposal, ideas, propose

__all__ = ["Proposal", "ideas", "propose"]
