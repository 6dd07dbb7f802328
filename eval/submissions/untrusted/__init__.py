"""Looking at what a person outside the project has made: limits, a trial in a process of its own, checked JSON."""
