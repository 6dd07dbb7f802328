"""``python -m conflictvla.cli``: the command ``conflictvla``."""

from .app import main

main()
