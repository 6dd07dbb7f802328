"""Policies: the interface, the calibrated scripted agents, and the ways to name one."""
