"""Ratios, intervals and tests over base tasks."""
