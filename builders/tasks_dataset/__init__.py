"""The tasks dataset: its columns, its card, its files."""
