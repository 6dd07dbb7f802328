"""Episode rows of a dataset, read and checked."""
