"""The simulated scenes. Importing this package needs the extra ``sim``, and no GL library."""

from ..libero.install import load_libero

# First of all: the modules below import robosuite, which must be brought up headless.
load_libero()
