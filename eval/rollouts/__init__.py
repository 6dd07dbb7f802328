"""Rollouts: run, recorded, replayed, rendered, and what they cost."""
