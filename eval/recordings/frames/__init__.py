"""Frames of a dataset, read and checked."""
