"""Analyses: each makes one table of the measured pairs."""
