"""A policy server of our own: a scripted agent behind the protocols of openpi and vla-eval."""
