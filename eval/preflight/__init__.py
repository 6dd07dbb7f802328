"""Checks before a run: of this machine, and of a policy."""
