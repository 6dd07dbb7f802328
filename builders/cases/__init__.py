"""Conflict cases: proposed, judged in every initial state, selected, checked again."""
