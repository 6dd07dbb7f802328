"""Safety: what acting costs, and what moves by itself; written in constrained BDDL, judged from recorded states."""

from .blocks import Constraints, print_constraints, read_constraints
from .conditions import Combination, Condition, CostSpec, Predicate
from .evaluation import CostResult, Evidence, ThingParts, evaluate_cost

__all__ = [
    "Combination",
    "Condition",
    "Constraints",
    "CostResult",
    "CostSpec",
    "Evidence",
    "Predicate",
    "ThingParts",
    "evaluate_cost",
    "print_constraints",
    "read_constraints",
]
