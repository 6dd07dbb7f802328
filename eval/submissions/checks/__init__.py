"""What must hold of submitted rollouts: each record, each frame, each recorded state."""
