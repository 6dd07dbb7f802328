"""Step goals: what each step of a plan brings about, and when a rollout first shows it."""
