"""The tasks data set: its columns, its card, its files."""
