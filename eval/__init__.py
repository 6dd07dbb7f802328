"""Policies in, rollouts and scores out."""
