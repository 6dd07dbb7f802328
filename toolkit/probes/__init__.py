"""Probes: the same task in other words, or seen otherwise."""
