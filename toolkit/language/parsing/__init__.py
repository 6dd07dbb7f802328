"""Reading English back into plans: LIBERO's own instructions, and those that were rendered."""
