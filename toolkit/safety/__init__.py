"""Safety: what acting costs, and what moves by itself; written in constrained BDDL, judged from recorded states."""

from .blocks import Constraints, print_constraints, read_constraints
from .conditions import Combination, Condition, CostSpec, Predicate
from .evaluation import CostResult, EntityParts, Evidence, evaluate_cost

__all__ = [
    "Combination",
    "Condition",
    "Constraints",
    "CostResult",
    "CostSpec",
    "EntityParts",
    "Evidence",
    "Predicate",
    "evaluate_cost",
    "print_constraints",
    "read_constraints",
]
