"""Policies behind a server, by the protocols of openpi and vla-eval."""
