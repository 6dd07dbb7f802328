"""Scores: the measured pairs with their tables, as a file, as text, and of two policies compared."""
