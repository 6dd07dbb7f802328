"""Recorded rollouts, read and checked."""
